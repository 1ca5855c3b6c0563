"""Levels: one statement for each, whatever its breadth, and nothing that one request loaded reaches another."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from graphql import get_introspection_query

from tests import shop
from tests.graphql import oracle
from tests.graphql.asking import PATH, ask, got, together
from tests.service import Service

DEEP = """query($id: ID!) { user(id: $id) { name orders(first: 100) {
  totalCount nodes { status user { email } lineItems { quantity product { name stock } } }
} addresses { nodes { city } } } }"""


@pytest.fixture(scope="module")
def buyers(service: Service) -> dict[str, Any]:
    """A user with one order of one line, and one with 100 orders of three lines of twenty products."""
    few, many = shop.a_user(service), shop.a_user(service)
    products = [shop.a_product(service, stock=None) for _ in range(20)]
    shop.an_order(service, (products[0], 1), user=few)
    shop.an_address(service, few)
    for _ in range(5):
        shop.an_address(service, many)
    bodies = [
        shop.order_body(many, *[(products[(n + at) % 20], at + 1) for at in range(3)]) for n in range(100)
    ]
    assert {made.status for made in service.calls(*[("POST", "/v1/orders", body) for body in bodies])} == {
        201
    }
    return {"few": few["id"], "many": many["id"], "products": products}


def statements(service: Service, query: str, variables: Any = None) -> int:
    answered = ask(service, query, variables)
    assert answered.sound is not None
    return answered.cost["statements"]


def test_a_level_takes_one_statement_whatever_its_breadth(service: Service, buyers: dict[str, Any]) -> None:
    """User, orders, line items and products cost as many statements for 100 orders as for one."""
    for _ in range(3):  # planned, compiled, and used again
        few = statements(service, DEEP, {"id": buyers["few"]})
        assert statements(service, DEEP, {"id": buyers["many"]}) == few
        # user; orders and addresses; how many orders and their line items; products. Orders' users are known.
        assert few == 6


def test_what_the_levels_hold_is_right(service: Service, buyers: dict[str, Any]) -> None:
    """Each order has its own lines, and each line its own product."""
    user = got(service, DEEP, {"id": buyers["many"]})["user"]
    names = {each["id"]: each["name"] for each in buyers["products"]}
    rest = shop.walked(service, f"/v1/orders?userId={buyers['many']}&limit=200")
    assert user["orders"]["totalCount"] == 100
    assert [
        [(line["quantity"], line["product"]["name"]) for line in order["lineItems"]]
        for order in user["orders"]["nodes"]
    ] == [
        [(line["quantity"], names[line["productId"]]) for line in order["lineItems"]]
        for order in sorted(rest, key=lambda order: order["id"])
    ]
    assert {order["user"]["email"] for order in user["orders"]["nodes"]} == {
        got(service, "query($id: ID!) { user(id: $id) { email } }", {"id": buyers["many"]})["user"]["email"]
    }


def test_aliases_share_a_statement(service: Service, buyers: dict[str, Any]) -> None:
    """Fifty aliases of one field with fifty ids are one statement, and so is all that is asked below them."""
    ids = [each["id"] for each in buyers["products"]]
    aliases = " ".join(f'p{n}: product(id: "{ids[n % 20]}") {{ sku }}' for n in range(50))
    assert statements(service, f"{{ {aliases} }}") == 1
    below = "user(id: $id) { orders(first: 5) { nodes { lineItems { product { sku } } } } }"
    aliases = " ".join(f"u{n}: {below}" for n in range(5))
    assert statements(service, f"query($id: ID!) {{ {aliases} }}", {"id": buyers["many"]}) == 4


def test_aliases_below_share_one_too(service: Service, buyers: dict[str, Any]) -> None:
    """The same relation under several names is read once."""
    lines = " ".join(
        f"l{n}: lineItems {{ a{n}: product {{ name }} b{n}: product {{ stock }} }}" for n in range(4)
    )
    query = f"query($id: ID!) {{ user(id: $id) {{ orders(first: 3) {{ nodes {{ {lines} }} }} }} }}"
    assert statements(service, query, {"id": buyers["many"]}) == 4


def test_pages_of_different_lengths_are_different_pages(service: Service, buyers: dict[str, Any]) -> None:
    """Aliases with arguments of their own each get their own page."""
    query = """query($id: ID!) { user(id: $id) {
      one: orders(first: 1) { nodes { id } } three: orders(first: 3) { nodes { id } } } }"""
    user = got(service, query, {"id": buyers["many"]})["user"]
    assert (len(user["one"]["nodes"]), len(user["three"]["nodes"])) == (1, 3)
    assert user["three"]["nodes"][:1] == user["one"]["nodes"]


def test_what_is_not_asked_for_is_not_read(service: Service, buyers: dict[str, Any]) -> None:
    """A field left out by a directive, by its own or a fragment's, costs no statement."""
    query = """query($id: ID!, $deep: Boolean!) { user(id: $id) {
      name orders(first: 1) @include(if: $deep) { nodes { id } } ... @skip(if: $deep) { addresses { nodes { id } } }
    } }"""
    assert statements(service, query, {"id": buyers["many"], "deep": True}) == 2
    assert statements(service, query, {"id": buyers["many"], "deep": False}) == 2
    assert (
        statements(
            service, query.replace("addresses { nodes { id } }", "id"), {"id": buyers["many"], "deep": False}
        )
        == 1
    )


def test_no_statement_is_made_for_nothing(service: Service) -> None:
    """Below what is not there nothing is read; the schema itself is no statement."""
    nobody = {"id": shop.an_order(service)["id"]}
    assert statements(service, DEEP, nobody) == 1
    assert statements(service, "{ __typename __schema { types { name } } }") == 0


def test_what_is_answered_is_what_graphql_core_answers(service: Service, buyers: dict[str, Any]) -> None:
    """graphql-core's executor over the same resolvers has the same data, and the same errors in the same places."""
    keys = [
        service.new_key(*scopes) for scopes in (("admin",), ("orders:read", "users:read"), ("orders:read",))
    ]
    for query, variables in (
        (DEEP, {"id": buyers["many"]}),
        (DEEP, {"id": "nope"}),
        ("{ orders(first: 3) { nodes { id user { name } lineItems { product { sku } } } } }", None),
        (
            "query($id: ID!) { user(id: $id) { id ...F ... on User { name } __typename } } fragment F on User { id: id }",
            {"id": buyers["few"]},
        ),
        ("{ users(first: -1) { totalCount } products(first: 1) { id } }", None),
        ('{ a: users(after: "x") { totalCount } }', None),
        (get_introspection_query(schema_description=True, specified_by_url=True, one_of=True), None),
        ('{ __type(name: "User") { fields { name } } orders(first: 1) { totalCount } }', None),
    ):
        for key in keys:
            data, errors = oracle.answered(service, query, variables, key)
            for _ in range(3):
                answered = ask(service, query, variables, key=key)
                assert json.dumps(answered.data) == json.dumps(data)
                assert sorted(map(str, answered.errors)) == sorted(map(str, errors))


# --- nothing is shared ---


def test_a_change_is_seen_by_the_next_request(service: Service, buyers: dict[str, Any]) -> None:
    """What a request loaded is gone with it: who asks after a change was confirmed sees it, in any crowd."""
    product = shop.a_product(service, stock=None)
    order = shop.an_order(service, (product, 1))
    query = "query($id: ID!) { order(id: $id) { lineItems { product { price } } } }"
    body = {"query": query, "variables": {"id": order["id"]}}

    async def price_in(reply: Any) -> float:
        found: float = reply.json["data"]["order"]["lineItems"][0]["product"]["price"]
        return found

    async def work() -> None:
        stop = asyncio.Event()

        async def crowd() -> None:
            while not stop.is_set():
                await service._call("POST", PATH, body, "", {})
                await asyncio.sleep(0)  # on SQLite a read is over before the loop's next turn

        crowds = [asyncio.create_task(crowd()) for _ in range(4)]
        try:
            for price in range(10, 30):
                path = f"/v1/products/{product['id']}"
                changed = await service._call("PATCH", path, {"price": price}, "", {})
                assert changed.status == 200
                assert await price_in(await service._call("POST", PATH, body, "", {})) == price
        finally:
            stop.set()
            await asyncio.gather(*crowds)

    service.run(work())


def test_callers_at_once_never_see_each_others_things(service: Service) -> None:
    """Requests of many keys that run together each answer with what is their user's, and nobody else's."""
    product = shop.a_product(service, stock=None)
    users = [shop.a_user(service) for _ in range(8)]
    keys = {user["id"]: service.new_key("admin", user=user["id"]) for user in users}
    orders = {
        user["id"]: [shop.an_order(service, (product, 1), user=user)["id"] for _ in range(n % 3 + 1)]
        for n, user in enumerate(users)
    }
    query = """query($other: ID!) {
      users { totalCount nodes { id orders { totalCount nodes { id user { id } } } } }
      orders { totalCount nodes { id user { id } } } user(id: $other) { id }
    }"""
    rounds = [
        (user["id"], (query, {"other": users[n - 1]["id"]}, keys[user["id"]]))
        for _ in range(4)
        for n, user in enumerate(users)
    ]
    for (user_id, _), answered in zip(rounds, together(service, *[each for _, each in rounds]), strict=True):
        own = {
            "totalCount": len(orders[user_id]),
            "nodes": [{"id": each, "user": {"id": user_id}} for each in orders[user_id]],
        }
        assert answered.sound == {
            "users": {"totalCount": 1, "nodes": [{"id": user_id, "orders": own}]},
            "orders": own,
            "user": None,
        }


def test_a_request_of_many_levels_is_one_request(new_service: Callable[..., Service], engine: str) -> None:
    """An empty shop answers with empty pages, at every level."""
    service = new_service(engine)
    empty = {"totalCount": 0, "nodes": []}
    query = "{ users { totalCount nodes { orders { totalCount } } } orders { totalCount nodes { id } } products { id } }"
    assert got(service, query) == {"users": empty, "orders": empty, "products": []}
