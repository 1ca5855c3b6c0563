"""Every writable member of every record survives every way that takes or shows it."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from graphql import GraphQLInputObjectType, GraphQLObjectType, build_schema

from tests import shop
from tests.graphql.asking import got
from tests.laws.values import World
from tests.service import Service
from tradepost import catalogue
from tradepost.domain.input import Input, names_of
from tradepost.domain.record import Mark, Member, camel
from tradepost.graphql.schema import schema_text
from tradepost.resource import Resource

# What a rule forbids, and why.
EXCEPTIONS = {
    "order.status POST": "a new order is PENDING",
    "order.user_id PUT": "an order stays its user's",
    "order.user_id PATCH": "an order stays its user's",
    "line_item.order_id PUT": "a line stays in its order",
    "line_item.order_id PATCH": "a line stays in its order",
    "line_item.product_id PUT": "a line stays one of its product",
    "line_item.product_id PATCH": "a line stays one of its product",
}
SCHEMA = build_schema(schema_text())


class Case(NamedTuple):
    """A member of a resource in a world of things to refer to."""

    world: World
    resource: Resource
    member: Member

    @property
    def name(self) -> str:
        return self.member.json_name

    def body(self, **members: Any) -> dict[str, Any]:
        """A body for the record, with some members more."""
        return {**self.world.body(self.resource.record), **members}

    def made(self, **members: Any) -> Any:
        """An item, as its POST answers, without the secrets that are shown only there."""
        made = self.world.service.made(self.world.path(self.resource.record), self.body(**members))
        secrets = self.resource.actions.reveals if self.resource.actions else {}
        return {name: value for name, value in made.items() if name not in secrets}

    def path(self, item: Any) -> str:
        return f"{self.world.path(self.resource.record)}/{item['id']}"

    def set(self) -> tuple[Any, Any]:
        """An item that has the value, and the value."""
        value = self.world.value(self.member)
        if self.exempt("POST"):
            item = self.made()
            assert self.world.service.call("PATCH", self.path(item), {self.name: value}).status == 200
            return item, value
        return self.made(**{self.name: value}), value

    def exempt(self, way: str) -> bool:
        return f"{self.resource.record.kind}.{self.member.name} {way}" in EXCEPTIONS


def post(case: Case) -> tuple[Any, Any]:
    value = case.world.value(case.member)
    made = case.made(**{case.name: value})
    assert made == shop.get(case.world.service, case.path(made))
    return value, made[case.name]


def put(case: Case) -> tuple[Any, Any]:
    return _written(case, "PUT", lambda item, change: {**item, **change})


def patch(case: Case) -> tuple[Any, Any]:
    return _written(case, "PATCH", lambda _, change: change)


def _written(case: Case, method: str, body: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """The value and what a GET shows after a write that answers the same; all else is as it was."""
    value, item = case.world.value(case.member), case.made()
    reply = case.world.service.call(method, case.path(item), body(item, {case.name: value}))
    shown = shop.get(case.world.service, case.path(item))
    assert (reply.status, reply.json) == (200, shown), reply
    moved = {case.name, "updatedAt", "shippingAddress", "total", "disabledReason"}
    assert {**item, **{name: shown[name] for name in moved & shown.keys()}} == shown
    return value, shown[case.name]


def fields(case: Case) -> tuple[Any, Any]:
    item, value = case.set()
    shown = shop.get(case.world.service, f"{case.path(item)}?fields={case.name}")
    assert shown.keys() == {"id", case.name}
    return value, shown[case.name]


def filtered(case: Case) -> tuple[Any, Any]:
    other, (item, value) = case.made(), case.set()
    text = quote(str(value))
    listed = shop.walked(case.world.service, f"{case.world.path(case.resource.record)}?{case.name}={text}")
    found = {each["id"]: each[case.name] for each in listed}
    assert set(found.values()) == {value}
    assert other["id"] not in found or other[case.name] == value
    return value, found[item["id"]]


def created(case: Case) -> tuple[Any, Any]:
    kind, value = case.resource.record.__name__, case.world.value(case.member)
    query = f"mutation($input: Create{kind}Input!) {{ create{kind}(input: $input) {{ id }} }}"
    made = got(case.world.service, query, {"input": case.body(**{case.name: value})})[f"create{kind}"]
    return value, shop.get(case.world.service, case.path(made))[case.name]


def updated(case: Case) -> tuple[Any, Any]:
    kind, value, item = case.resource.record.__name__, case.world.value(case.member), case.made()
    query = (
        f"mutation($id: ID!, $input: Update{kind}Input!) {{ update{kind}(id: $id, input: $input) {{ id }} }}"
    )
    got(case.world.service, query, {"id": item["id"], "input": {case.name: value}})
    return value, shop.get(case.world.service, case.path(item))[case.name]


def read(case: Case) -> tuple[Any, Any]:
    item, value = case.set()
    field = camel(case.resource.record.kind)
    query = f"query($id: ID!) {{ {field}(id: $id) {{ {case.name} }} }}"
    return value, got(case.world.service, query, {"id": item["id"]})[field][case.name]


WAYS: dict[str, Callable[[Case], tuple[Any, Any]]] = {
    "POST": post,
    "PUT": put,
    "PATCH": patch,
    "fields": fields,
    "filter": filtered,
    "create": created,
    "update": updated,
    "read": read,
}


def _ways(resource: Resource, each: Member) -> Iterator[str]:
    """The ways that take or show a member."""
    kind, patched = resource.record.__name__, Mark.PATCHED in each.marks
    yield from (
        way
        for way in ("POST", "PUT", "PATCH")
        if way in resource.methods and not (patched and way != "PATCH")
    )
    yield "fields"
    if Mark.FILTERABLE in each.marks:
        yield "filter"
    for way in ("create", "update"):
        declared = SCHEMA.type_map.get(f"{way.title()}{kind}Input")
        if isinstance(declared, GraphQLInputObjectType) and each.json_name in declared.fields:
            yield way
    shown, queries = SCHEMA.type_map.get(kind), SCHEMA.query_type
    if (
        isinstance(shown, GraphQLObjectType)
        and each.json_name in shown.fields
        and queries
        and camel(resource.record.kind) in queries.fields
    ):
        yield "read"


CASES = {
    f"{resource.record.kind}.{each.name} {way}": (resource, each, way)
    for resource in catalogue.RESOURCES
    if "POST" in resource.methods
    for each in Input(resource.record, names_of(resource.record), patching=True).taken
    if each.name != resource.under or resource.top
    for way in _ways(resource, each)
}


@pytest.fixture(scope="module")
def world(service: Service) -> World:
    """What bodies refer to."""
    return World(service)


@pytest.mark.parametrize("name", [name for name in CASES if name not in EXCEPTIONS])
def test_every_member_survives_every_way(world: World, name: str) -> None:
    """What was sent is what is shown."""
    resource, each, way = CASES[name]
    sent, shown = WAYS[way](Case(world, resource, each))
    assert shown == sent
    assert shown != each.default


def test_every_exception_is_of_a_member_that_there_is() -> None:
    """An exception goes with its member."""
    assert EXCEPTIONS.keys() <= CASES.keys()
