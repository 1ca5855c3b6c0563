"""Events: every write appends exactly what it announces, in the envelope of CloudEvents, in its own transaction."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from tests import shop
from tests.given_clock import DAY, SECOND, GivenClock
from tests.service import Service
from tradepost.actions.orders import Orders
from tradepost.catalogue import event_types
from tradepost.events import outbox
from tradepost.events.event_type import EventType
from tradepost.housekeeping import Housekeeping

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Things(NamedTuple):
    """A user with an address, a product, and an order with two lines; and the paths to them."""

    user: Any
    address: Any
    product: Any
    order: Any
    users: str
    addresses: str
    products: str
    orders: str
    lines: str

    @property
    def subjects(self) -> list[str]:
        return [f"users/{self.user['id']}", f"products/{self.product['id']}", f"orders/{self.order['id']}"]


def _things(service: Service) -> Things:
    user, product = shop.a_user(service), shop.a_product(service)
    address = shop.an_address(service, user)
    order = shop.an_order(service, (product, 1), (product, 1), user=user)
    users, orders = f"/v1/users/{user['id']}", f"/v1/orders/{order['id']}"
    line = f"{orders}/line-items/{order['lineItems'][0]['id']}"
    return Things(
        user,
        address,
        product,
        order,
        users,
        f"{users}/addresses/{address['id']}",
        f"/v1/products/{product['id']}",
        orders,
        line,
    )


def _told(service: Service, things: Things) -> list[str]:
    """What was told of all of them, each subject's in its order."""
    found: list[str] = []
    for subject in things.subjects:
        found += shop.told(service, subject)
    return found


Step = tuple[str, Callable[[Things], str], Callable[[Things], Any]]


def _same(_: Things) -> Any:
    return None


# What a write is, and what it tells, as CONTRACT 3 and 7 have it. `…` asks for nothing before it.
WRITES: dict[str, tuple[str, Callable[[Things], str], Callable[[Things], Any], list[str]]] = {
    "user renamed": ("PATCH", lambda t: t.users, lambda _: {"name": "Grace"}, ["user.updated"]),
    "user replaced": ("PUT", lambda t: t.users, lambda t: {**t.user, "name": "Grace"}, ["user.updated"]),
    "user deactivated": (
        "PATCH",
        lambda t: t.users,
        lambda _: {"status": "DEACTIVATED"},
        ["user.deactivated"],
    ),
    "user deleted": ("DELETE", lambda t: t.users, _same, ["user.deleted"]),
    "address added": (
        "POST",
        lambda t: f"{t.users}/addresses",
        lambda _: shop.address_body(),
        ["user.updated"],
    ),
    "address changed": ("PATCH", lambda t: t.addresses, lambda _: {"city": "York"}, ["user.updated"]),
    "address removed": ("DELETE", lambda t: t.addresses, _same, ["user.updated"]),
    "product repriced": ("PATCH", lambda t: t.products, lambda _: {"price": 3}, ["product.updated"]),
    "product restocked": ("PATCH", lambda t: t.products, lambda _: {"stock": 7}, ["product.updated"]),
    "product archived": (
        "PATCH",
        lambda t: t.products,
        lambda _: {"status": "ARCHIVED"},
        ["product.updated"],
    ),
    "product deleted": ("DELETE", lambda t: t.products, _same, ["product.deleted"]),
    "order fulfilled": ("PATCH", lambda t: t.orders, lambda _: {"status": "FULFILLED"}, ["order.fulfilled"]),
    "order cancelled": ("PATCH", lambda t: t.orders, lambda _: {"status": "CANCELLED"}, ["order.cancelled"]),
    "order fulfilled by PUT": (
        "PUT",
        lambda t: t.orders,
        lambda t: {**t.order, "status": "FULFILLED"},
        ["order.fulfilled"],
    ),
    "order deleted": ("DELETE", lambda t: t.orders, _same, ["order.deleted"]),
    "order sent elsewhere": (
        "PATCH",
        lambda t: t.orders,
        lambda t: {"shippingAddressId": t.address["id"]},
        ["order.updated"],
    ),
    "lines replaced": (
        "PATCH",
        lambda t: t.orders,
        lambda t: {"lineItems": t.order["lineItems"][:1]},
        ["order.updated"],
    ),
    "line added": (
        "POST",
        lambda t: f"{t.orders}/line-items",
        lambda t: {"productId": t.product["id"], "quantity": 1},
        ["order.updated"],
    ),
    "line added at the top": (
        "POST",
        lambda _: "/v1/line-items",
        lambda t: {"orderId": t.order["id"], "productId": t.product["id"], "quantity": 1},
        ["order.updated"],
    ),
    "line changed": ("PATCH", lambda t: t.lines, lambda _: {"quantity": 2}, ["order.updated"]),
    "line removed": ("DELETE", lambda t: t.lines, _same, ["order.updated"]),
}


@pytest.mark.parametrize("name", WRITES)
def test_each_write_tells_exactly_what_it_is(service: Service, name: str) -> None:
    """A write appends the events of its kind, once each, about what it changed, and none about anything else."""
    method, path, body, expected = WRITES[name]
    things = _things(service)
    before = _told(service, things)
    assert before == ["user.created", "user.updated", "product.created", "order.placed"]
    reply = service.call(method, path(things), body(things))
    assert reply.status in (200, 201, 204), reply
    after = _told(service, things)
    for each in before:
        after.remove(each)
    assert after == expected


def test_lines_and_status_in_one_write_tell_both(service: Service) -> None:
    """A write that changes an order's lines and ends it tells both; so does one that renames and deactivates a user."""
    things = _things(service)
    body = {"lineItems": things.order["lineItems"][:1], "status": "FULFILLED"}
    assert service.call("PATCH", things.orders, body).status == 200
    assert sorted(shop.told(service, things.subjects[2])) == [
        "order.fulfilled",
        "order.placed",
        "order.updated",
    ]
    assert service.call("PATCH", things.users, {"name": "Grace", "status": "DEACTIVATED"}).status == 200
    assert sorted(shop.told(service, things.subjects[0])[2:]) == ["user.deactivated", "user.updated"]


def test_a_user_is_deactivated_once(service: Service) -> None:
    """Deactivation is told when it happens: not again while it lasts, and again after the user was active."""
    user = shop.a_user(service)
    path = f"/v1/users/{user['id']}"
    deactivated = {"status": "DEACTIVATED"}
    for body in (deactivated, deactivated, {"name": "Grace"}, {"status": "ACTIVE"}, deactivated):
        assert service.call("PATCH", path, body).status == 200
    assert shop.told(service, f"users/{user['id']}") == [
        "user.created",
        "user.deactivated",
        "user.updated",
        "user.updated",
        "user.deactivated",
    ]


def test_a_user_made_deactivated_was_created(service: Service) -> None:
    """A user that begins as DEACTIVATED is told of as created."""
    user = shop.a_user(service, status="DEACTIVATED")
    assert "user.created" in shop.told(service, f"users/{user['id']}")


def test_what_changes_nothing_tells_nothing(service: Service) -> None:
    """Refused, failed, unchanging and replayed writes, and reads, append no event."""
    things = _things(service)
    before = _told(service, things)
    stale = {"if_match": '"x"'}
    key = shop.unique()
    for method, path, body, headers in (
        ("PATCH", things.users, {}, {}),
        ("PUT", things.users, things.user, {}),
        ("PATCH", things.users, {"name": "Grace"}, stale),
        ("PATCH", things.users, {"name": ""}, {}),
        ("PATCH", things.users, {"email": shop.a_user(service)["email"]}, {}),
        ("DELETE", things.users, None, stale),
        ("PATCH", things.addresses, {"city": "Leeds"}, {}),
        ("PATCH", things.addresses, {"country": "XX"}, {}),
        ("PATCH", things.products, {"price": 2.5}, {}),
        ("PATCH", things.products, {"price": -1}, {}),
        ("PATCH", things.orders, {"status": "PENDING"}, {}),
        ("PATCH", things.orders, {"status": "LOST"}, {}),
        ("PATCH", things.orders, {"lineItems": []}, {}),
        ("PATCH", things.lines, {"quantity": 1}, {}),
        ("PATCH", things.lines, {"quantity": 1000}, {}),
        ("POST", f"{things.orders}/line-items", {"productId": "x", "quantity": 1}, {"idempotency_key": key}),
        ("POST", f"{things.users}/addresses", {}, {}),
        ("GET", things.orders, None, {}),
        ("HEAD", things.orders, None, {}),
        ("OPTIONS", things.orders, None, {}),
    ):
        service.call(method, path, body, **headers)
    assert _told(service, things) == before


def test_an_action_that_fails_leaves_neither_change_nor_event(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When an action breaks after it changed rows and noted events, nothing of either remains."""
    things = _things(service)
    before, shown = _told(service, things), service.get(things.orders).body
    whole = Orders.replace

    async def broken(self: Orders, *args: Any) -> Any:
        await whole(self, *args)
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(Orders, "replace", broken)
        assert service.call("PATCH", things.orders, {"status": "CANCELLED"}).status == 500
    assert (_told(service, things), service.get(things.orders).body) == (before, shown)
    assert shop.stock_of(service, things.product) == 98


def test_a_change_without_its_event_does_not_happen(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the event cannot be written the change is not made either: both or neither."""
    things = _things(service)
    shown = service.get(things.orders).body

    async def broken(*_: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(outbox.Outbox, "append", broken)
        assert service.call("PATCH", things.orders, {"status": "CANCELLED"}).status == 500
        assert service.call("DELETE", things.orders).status == 500
        assert service.call("DELETE", things.lines).status == 500
    assert service.get(things.orders).body == shown
    assert shop.stock_of(service, things.product) == 98


def test_the_catalogue_has_the_types_of_the_law() -> None:
    """The types of CONTRACT 7, no more and no fewer."""
    assert set(event_types()) == {
        "user.created",
        "user.updated",
        "user.deactivated",
        "user.deleted",
        "product.created",
        "product.updated",
        "product.deleted",
        "order.placed",
        "order.updated",
        "order.fulfilled",
        "order.cancelled",
        "order.deleted",
        "webhook.ping",
    }


# --- the envelope ---


def test_the_envelope_of_an_event(service: Service) -> None:
    """CloudEvents 1.0: specversion, id, source, type, subject, time, dataschema; data carries identifiers alone."""
    user = shop.a_user(service)
    (event,) = shop.events_of(service, f"users/{user['id']}")
    assert (event["specversion"], event["source"]) == ("1.0", "http://shop.example")
    assert event["type"] == "dev.tradepost.user.created"
    assert event["subject"] == f"users/{user['id']}"
    assert event["time"] == user["createdAt"]
    assert INSTANT.fullmatch(event["time"])
    assert event["datacontenttype"] == "application/json"
    assert event["data"] == {
        "entityType": "user",
        "entityId": user["id"],
        "eventType": event["type"],
        "timestamp": event["time"],
        "schemaVersion": event["data"]["schemaVersion"],
    }
    assert shop.get(service, f"/v1/events/{event['id']}") == event
    assert set(event) == {
        "specversion",
        "id",
        "source",
        "type",
        "subject",
        "time",
        "datacontenttype",
        "dataschema",
        "data",
    }
    assert user["email"] not in json.dumps(event)


@pytest.mark.parametrize("name", ["user.created", "product.created", "order.placed", "order.cancelled"])
def test_dataschema_is_an_address_that_resolves(service: Service, name: str) -> None:
    """`dataschema` is a URL where the JSON Schema of `data` is, which the data satisfies."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 (slow to load)

    things = _things(service)
    service.call("PATCH", things.orders, {"status": "CANCELLED"})
    found = [event for subject in things.subjects for event in shop.events_of(service, subject)]
    event = next(event for event in found if event["type"].endswith(name))
    assert event["dataschema"].startswith("http://shop.example/")
    page = service.get(event["dataschema"].removeprefix("http://shop.example"), key=None)
    assert page.status == 200
    Draft202012Validator(page.json).validate(event["data"])


def test_entities_are_told_by_their_own_names(service: Service) -> None:
    """`subject` is the path of the entity, whose type and id `data` has."""
    things = _things(service)
    for subject, kind in zip(things.subjects, ("user", "product", "order"), strict=True):
        for event in shop.events_of(service, subject):
            assert event["subject"] == subject
            assert (event["data"]["entityType"], event["data"]["entityId"]) == (
                kind,
                subject.partition("/")[2],
            )
            assert service.get(f"/v1/{subject}").status == 200


def test_ids_of_events_are_unique(service: Service) -> None:
    """No two events share an id, nor does an event share one with an entity."""
    things = _things(service)
    ids = [event["id"] for subject in things.subjects for event in shop.events_of(service, subject)]
    assert len(set(ids)) == len(ids)
    assert not set(ids) & {things.user["id"], things.product["id"], things.order["id"], things.address["id"]}


def test_prefix_and_source_are_settings(new_service: Callable[..., Service]) -> None:
    """Types start with the configured prefix, source and dataschema with the configured address."""
    service = new_service("sqlite", event_prefix="com.example.shop", base_url="https://api.example.com")
    user = shop.a_user(service)
    (event,) = shop.events_of(service, f"users/{user['id']}")
    assert event["type"] == event["data"]["eventType"] == "com.example.shop.user.created"
    assert event["source"] == "https://api.example.com"
    assert event["dataschema"].startswith("https://api.example.com/")


@pytest.mark.parametrize("prefix", ["com.example.shop", "user"])
def test_a_type_is_found_by_its_short_name(new_service: Callable[..., Service], prefix: str) -> None:
    """`type` takes a type without the prefix too; it is the same filter, and a cursor is good for both spellings."""
    service = new_service("sqlite", event_prefix=prefix)
    users = [shop.a_user(service) for _ in range(2)]
    shop.a_product(service)
    full = f"/v1/events?limit=1&type={prefix}.user.created"
    first, short = shop.get(service, full), shop.get(service, "/v1/events?limit=1&type=user.created")
    assert first == short
    rest = shop.get(service, f"/v1/events?type=user.created&cursor={first['next']}")
    assert [each["subject"] for each in (*first["items"], *rest["items"])] == [
        f"users/{u['id']}" for u in users
    ]
    assert shop.get(service, "/v1/events?type=user.creat")["items"] == []


# --- trace context ---


def test_a_traceparent_is_carried_on(service: Service) -> None:
    """The W3C traceparent of the request that caused an event is in the event; without one there is none."""
    user = service.made("/v1/users", shop.user_body(), traceparent=TRACE)
    path = f"/v1/users/{user['id']}"
    service.call("PATCH", path, {"name": "Grace"})
    other = TRACE.replace("b7ad", "b7ae")
    service.call("DELETE", path, traceparent=other)
    events = shop.events_of(service, f"users/{user['id']}")
    assert [event.get("traceparent") for event in events] == [TRACE, None, other]
    assert "traceparent" not in events[1]


@pytest.mark.parametrize(
    "bad",
    [
        "x",
        TRACE.upper(),
        TRACE[:-1],
        TRACE + "0",
        "ff" + TRACE[2:],
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
        f"{TRACE}, {TRACE}",
    ],
)
def test_a_bad_traceparent_is_ignored(service: Service, bad: str) -> None:
    """What is no valid traceparent (W3C Trace Context, 3.2.2) is no reason to refuse, and is not carried on."""
    user = service.made("/v1/users", shop.user_body(), traceparent=bad)
    (event,) = shop.events_of(service, f"users/{user['id']}")
    assert "traceparent" not in event


# --- the log ---


def test_events_are_listed_in_the_order_they_happened(service: Service) -> None:
    """The list of events is in the order of the log, and backwards with -id."""
    user = shop.a_user(service)
    for n in range(6):
        service.call("PATCH", f"/v1/users/{user['id']}", {"name": f"Ada {n}"})
    subject = f"users/{user['id']}"
    events = shop.events_of(service, subject)
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)
    backwards = shop.walked(service, f"/v1/events?subject={subject}&sort=-id&limit=2")
    assert backwards == events[::-1]


def test_a_walk_through_the_log_shows_what_comes_meanwhile(service: Service) -> None:
    """Reading on by the cursor shows every event once, those that were written on the way included."""
    user = shop.a_user(service)
    subject, path = f"users/{user['id']}", f"/v1/users/{user['id']}"
    for n in range(3):
        service.call("PATCH", path, {"name": f"Ada {n}"})
    shop.events_of(service, subject)
    page = shop.get(service, f"/v1/events?subject={subject}&limit=2")
    seen = page["items"]
    for n in range(3):
        service.call("PATCH", path, {"name": f"Eve {n}"})
    shop.events_of(service, subject)
    while page["next"] is not None:
        page = shop.get(service, f"/v1/events?subject={subject}&limit=2&cursor={page['next']}")
        seen += page["items"]
        assert len(seen) < shop.MANY
    assert seen == shop.events_of(service, subject)
    assert len(seen) == 7


def test_events_cannot_be_written(service: Service) -> None:
    """Events are read: no method of the interface makes, changes or removes one."""
    (event,) = shop.events_of(service, f"users/{shop.a_user(service)['id']}")
    path = f"/v1/events/{event['id']}"
    for method, where in (("POST", "/v1/events"), ("PUT", path), ("PATCH", path), ("DELETE", path)):
        assert service.call(method, where, {}).status == 405
    assert shop.get(service, path) == event


def test_events_are_kept_for_their_time(engine: str, new_service: Callable[..., Service]) -> None:
    """Events are kept 30 days or as long as is set, then forgotten, and a walk that was under way goes on."""
    clock = GivenClock()
    service = new_service(engine, clock=clock, retention_days="2")
    application = service.app
    old = [shop.a_user(service) for _ in range(3)]
    cursor = shop.get(service, "/v1/events?limit=1")["next"]
    clock.move(2 * DAY - SECOND)
    new = shop.a_user(service)
    keeping = Housekeeping(application.rest.performer.database, clock, application.metrics, 2)
    service.run(keeping.purge())
    assert all(shop.told(service, f"users/{user['id']}") for user in old)
    clock.move(2 * SECOND)
    service.run(keeping.purge())
    assert not any(shop.told(service, f"users/{user['id']}") for user in old)
    assert shop.told(service, f"users/{new['id']}") == ["user.created"]
    rest = shop.get(service, f"/v1/events?cursor={cursor}")
    assert f"users/{new['id']}" in {event["subject"] for event in rest["items"]}


def test_a_second_version_of_a_type_runs_beside_the_first(new_service: Callable[..., Service]) -> None:
    """While two versions of a type run in parallel each write tells both, under their own names and ids."""
    service = new_service("sqlite")
    performer = service.app.rest.performer
    types = {**performer.emitter.types, "user.created": EventType("user.created", (1, 2))}
    performer.services = replace(performer.services, emitter=replace(performer.emitter, types=types))
    user = shop.a_user(service)
    events = shop.walked(service, f"/v1/events?subject=users/{user['id']}")
    assert [event["type"] for event in events] == [
        "dev.tradepost.user.created",
        "dev.tradepost.user.created.v2",
    ]
    for event in events:
        short = event["type"].removeprefix("dev.tradepost.")
        assert shop.walked(service, f"/v1/events?subject=users/{user['id']}&type={short}") == [event]
    assert len({event["id"] for event in events}) == 2
    assert len({event["data"]["schemaVersion"] for event in events}) == 2
    assert [event["data"]["eventType"] for event in events] == [event["type"] for event in events]
