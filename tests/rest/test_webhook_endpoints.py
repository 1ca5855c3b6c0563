"""Webhook endpoints: where they may be, what they are told of, and when they are told nothing."""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import shop
from tests.rest.hooks import DELIVERIES, ENDPOINTS, URL, an_endpoint, at, body, heard, queued, secrets_of
from tests.service import Service
from tradepost.access.sealing import Sealer
from tradepost.egress.resolver import NameResolver
from tradepost.egress.targets import Targets
from tradepost.events import outbox
from tradepost.events.event_type import EventType
from tradepost.storage.tables import metadata
from tradepost.versions.changes import Rename, Version


@pytest.fixture(scope="module")
def service(engine: str, new_service: Callable[..., Service]) -> Service:
    """A service of its own: nobody else's events are to be queued for all these endpoints."""
    return new_service(engine)


def everything(service: Service) -> str:
    """What the database holds, all columns of all tables."""
    return "\n".join(
        str(service.rows(f'SELECT * FROM "{name}"')) for name in metadata.tables if name in _OURS
    )


_OURS = {
    *("webhook_endpoints", "webhook_secrets", "webhook_subscriptions", "webhook_deliveries"),
    *("idempotency_keys", "events", "api_keys", "users"),
}


# --- what an endpoint is ---


def test_an_endpoint_says_what_it_is(service: Service) -> None:
    """A new endpoint has its defaults, and shows its first secret this once."""
    given = body()
    reply = service.post(ENDPOINTS, given)
    made = reply.json
    assert reply.status == 201
    assert reply.headers["location"] == at(made)
    assert reply.headers["cache-control"] == "no-store"
    secret = made.pop("secret")
    assert (made["url"], made["description"], made["eventTypes"]) == (given["url"], None, ["*"])
    assert (made["contentType"], made["status"]) == ("application/cloudevents+json", "ENABLED")
    assert made["disabledReason"] is None
    assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32
    assert shop.get(service, at(made)) == made
    assert list(secrets_of(service, made).values()) == ["CURRENT"]
    assert an_endpoint(service)["secret"] != secret


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/x",
        "ftp://hooks.example.com/x",
        "hooks.example.com",
        "/x",
        "https://",
        "https://ada:pass@hooks.example.com/x",
        "https://hooks.example.com/x#part",
        "https://127.0.0.1/x",
        "https://2130706433/x",
        "https://[::1]/x",
        "https://[::ffff:10.0.0.1]/x",
        "https://169.254.169.254/latest/meta-data",
        "https://localhost/x",
        "https://hooks.example.com:99999/x",
        "https://hooks.example.com/ x",
    ],
)
def test_a_url_that_nothing_may_be_sent_to_is_422(service: Service, url: str) -> None:
    """Whatever is no https URL of a public address is refused when it is registered and when it is changed."""
    endpoint = an_endpoint(service)
    for method, path in (("POST", ENDPOINTS), ("PUT", at(endpoint)), ("PATCH", at(endpoint))):
        reply = service.call(method, path, {"url": url, "eventTypes": ["nothing.*"]})
        assert (reply.status, shop.fields_of(reply.json)) == (422, {"url", "eventTypes[0]"}), (method, url)
    assert shop.get(service, at(endpoint))["url"] == endpoint["url"]


def with_names(service: Service, find: Callable[[str], Sequence[str]]) -> Service:
    """The service, for which names are found so."""
    performer = service.app.rest.performer
    names = NameResolver(allow_private=False, lookup=find)
    performer.services = replace(performer.services, targets=Targets(allow_private=False, resolver=names))
    return service


def test_a_name_that_points_inwards_is_422(new_service: Callable[..., Service]) -> None:
    """A name is looked up before anything is written: one with a private address among others is refused."""
    found = {"out.example.com": ["1.1.1.1"], "in.example.com": ["1.1.1.1", "10.0.0.7"]}
    service = with_names(new_service("sqlite"), found.__getitem__)
    endpoint = an_endpoint(service, url="https://out.example.com/x")
    for method, path in (("POST", ENDPOINTS), ("PUT", at(endpoint)), ("PATCH", at(endpoint))):
        for more in ({}, {"colour": "red"}):
            reply = service.call(method, path, {"url": "https://in.example.com/x", **more})
            assert (reply.status, shop.fields_of(reply.json)) == (422, {"url", *more})
    assert [each["url"] for each in shop.walked(service, ENDPOINTS)] == ["https://out.example.com/x"]


def test_a_name_that_is_not_found_is_taken(new_service: Callable[..., Service]) -> None:
    """A name that has no address yet is no reason to refuse: whoever sends will find out."""

    def find(name: str) -> list[str]:
        raise OSError(name)

    service = with_names(new_service("sqlite"), find)
    assert an_endpoint(service, url="https://new.example.com/x")["status"] == "ENABLED"


def test_development_may_send_to_this_machine(new_service: Callable[..., Service]) -> None:
    """With the setting for it, http and loopback are taken."""
    service = new_service("sqlite", webhook_allow_private="1")
    assert an_endpoint(service, url="http://127.0.0.1:8787/x")["url"] == "http://127.0.0.1:8787/x"


def test_what_was_taken_once_can_still_be_changed(
    engine: str, new_service: Callable[..., Service], new_database: Callable[[str], str]
) -> None:
    """An endpoint whose URL is refused by now is disabled, described and deleted as any other; its URL stays."""
    service = new_service(engine, webhook_allow_private="1")
    endpoint = an_endpoint(service, url="http://127.0.0.1:8787/x")
    strict = Service(service.database_url)
    try:
        changed = strict.call("PATCH", at(endpoint), {"status": "DISABLED", "description": "old"})
        assert (changed.status, changed.json["status"]) == (200, "DISABLED")
        assert strict.call("PATCH", at(endpoint), {"url": "http://127.0.0.1:1/x"}).status == 422
        assert strict.call("DELETE", at(endpoint)).status == 204
    finally:
        strict.stop()


# --- types ---


@pytest.mark.parametrize(
    "entry",
    [
        "*",
        "order.*",
        "order.placed",
        "dev.tradepost.*",
        "dev.tradepost.order.*",
        "dev.tradepost.order.placed",
    ],
)
def test_types_may_carry_the_prefix(service: Service, entry: str) -> None:
    """A type, all of an entity, or all: with the service's prefix or without; kept as given."""
    endpoint = an_endpoint(service, entry, entry)
    assert endpoint["eventTypes"] == [entry, entry]
    shop.an_order(service)
    assert heard(service, endpoint).count("order.placed") == 1


@pytest.mark.parametrize(
    "entry",
    [
        "order",
        "order.",
        "order.placed.v2",
        "order.placed.*",
        "orders.*",
        "Order.*",
        "or*",
        "**",
        "",
        ".*",
        "com.example.order.placed",
        "dev.tradepost.",
        "dev.tradepost.dev.tradepost.order.placed",
    ],
)
def test_a_type_that_matches_nothing_is_422(service: Service, entry: str) -> None:
    """What matches no type of the catalogue is named by its place."""
    reply = service.post(ENDPOINTS, body(eventTypes=["order.placed", entry, "user.*"]))
    assert (reply.status, shop.fields_of(reply.json)) == (422, {"eventTypes[1]"})
    assert reply.json["errors"][0]["code"] == "unknown"


def test_a_prefix_that_is_an_entity_does_not_confuse(new_service: Callable[..., Service]) -> None:
    """Where the prefix is also the name of an entity, an entry means what it means without the prefix."""
    service = new_service("sqlite", event_prefix="order")
    orders, users = an_endpoint(service, "order.*"), an_endpoint(service, "order.user.*")
    shop.an_order(service)
    assert [each["eventType"] for each in queued(service, orders)] == ["order.order.placed"]
    assert [each["eventType"] for each in queued(service, users)] == ["order.user.created"]


@pytest.mark.parametrize("types", [[], ["*"] * 101, "*", None, [1], [None]])
def test_types_are_a_list_of_texts(service: Service, types: Any) -> None:
    """None, too many, and what is no list of texts are 422."""
    reply = service.post(ENDPOINTS, body(eventTypes=types))
    assert reply.status == 422
    assert {field.partition("[")[0] for field in shop.fields_of(reply.json)} == {"eventTypes"}


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT"])
def test_each_bad_entry_is_named_by_its_place(service: Service, method: str) -> None:
    """Every entry of `eventTypes` that is no text is an error of its own, with what it has to be."""
    path = ENDPOINTS if method == "POST" else at(an_endpoint(service))
    reply = service.call(method, path, body(eventTypes=[1, "*", None, "a\0b"], status="OFF"))
    assert reply.status == 422
    assert [
        (each["field"], each["pointer"], each["code"], each["message"]) for each in reply.json["errors"]
    ] == [
        ("eventTypes[0]", "#/eventTypes/0", "type", "must be a string"),
        ("eventTypes[2]", "#/eventTypes/2", "type", "must be a string"),
        ("eventTypes[3]", "#/eventTypes/3", "invalid", "must not contain a NUL character"),
        ("status", "#/status", "unknown_value", "must be one of ENABLED, DISABLED"),
    ]


@pytest.mark.parametrize(
    ("types", "code", "message"),
    [
        ("*", "type", "must be an array of 1 to 100 items"),
        ([1] * 101, "length", "must be an array of 1 to 100 items"),
        ([], "length", "must be an array of 1 to 100 items"),
    ],
)
def test_a_list_that_is_none_is_named_itself(service: Service, types: Any, code: str, message: str) -> None:
    """What is no list, or one of a wrong length, is one error at `eventTypes`."""
    reply = service.post(ENDPOINTS, body(eventTypes=types))
    (error,) = reply.json["errors"]
    assert (error["field"], error["code"], error["message"]) == ("eventTypes", code, message)


# --- what is queued ---


def test_an_event_is_queued_once_for_each_that_wants_it(service: Service) -> None:
    """Each endpoint with a pattern that matches gets one delivery, however many match; no other gets any."""
    every = an_endpoint(service, "*", "order.*", "order.placed", "dev.tradepost.order.placed")
    family, exact = an_endpoint(service, "order.*"), an_endpoint(service, "order.placed", "product.deleted")
    other, disabled = an_endpoint(service, "user.deleted"), an_endpoint(service, status="DISABLED")
    order = shop.an_order(service)
    assert heard(service, every) == ["user.created", "product.created", "order.placed"]
    assert heard(service, family) == heard(service, exact) == ["order.placed"]
    assert heard(service, other) == heard(service, disabled) == []
    (delivery,) = queued(service, exact)
    (event,) = shop.events_of(service, f"orders/{order['id']}")
    assert (delivery["eventId"], delivery["eventType"]) == (event["id"], event["type"])
    assert (delivery["status"], delivery["attempts"], delivery["redeliveryId"]) == ("PENDING", [], None)
    assert delivery["nextAttemptAt"] == delivery["createdAt"] == event["time"]


def test_events_that_come_together_are_each_queued(service: Service) -> None:
    """A change that announces several events queues each of them for whoever wants it."""
    updated, both = an_endpoint(service, "user.updated"), an_endpoint(service, "user.*")
    user = shop.a_user(service)
    service.call("PATCH", f"/v1/users/{user['id']}", {"status": "DEACTIVATED", "name": "Eve"})
    assert heard(service, updated) == ["user.updated"]
    assert sorted(heard(service, both)) == ["user.created", "user.deactivated", "user.updated"]


def test_a_change_that_fails_queues_nothing(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A delivery is written with the change or not at all; and without its delivery there is no change."""
    endpoint = an_endpoint(service, "user.*")
    user = shop.user_body()
    assert service.post("/v1/users", user).status == 201
    assert service.post("/v1/users", user).status == 409

    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    other = shop.user_body()
    with monkeypatch.context() as patched:
        patched.setattr(outbox, "delivery", broken)
        assert service.post("/v1/users", other).status == 500
    assert heard(service, endpoint) == ["user.created"]
    assert shop.walked(service, f"/v1/users?email={other['email']}") == []


def test_a_repeated_request_queues_once(service: Service) -> None:
    """A request sent again under its idempotency key queues nothing more."""
    endpoint, given = an_endpoint(service, "user.*"), shop.user_body()
    for _ in range(2):
        assert service.post("/v1/users", given, idempotency_key=shop.unique(given["email"])[:60]).status in (
            201,
            409,
        )
    key = shop.unique()
    fresh = shop.user_body()
    for _ in range(3):
        assert service.post("/v1/users", fresh, idempotency_key=key).status == 201
    assert heard(service, endpoint) == ["user.created"] * 2


def test_a_second_version_goes_to_whom_it_should(engine: str, new_service: Callable[..., Service]) -> None:
    """`user.created` is told of the first version alone, `user.created.v2` of the second, `user.*` and `*` of both."""
    service = new_service(engine)
    assert service.post(ENDPOINTS, body(eventTypes=["user.created.v2"])).status == 422
    performer = service.app.rest.performer
    types = {**performer.emitter.types, "user.created": EventType("user.created", (1, 2))}
    performer.services = replace(performer.services, emitter=replace(performer.emitter, types=types))
    first, second = (
        an_endpoint(service, "user.created"),
        an_endpoint(service, "dev.tradepost.user.created.v2"),
    )
    family, every = an_endpoint(service, "user.*"), an_endpoint(service)
    shop.a_user(service)
    assert heard(service, first) == ["user.created"]
    assert heard(service, second) == ["user.created.v2"]
    assert (
        sorted(heard(service, family)) == sorted(heard(service, every)) == ["user.created", "user.created.v2"]
    )


# --- changing ---


def test_what_an_endpoint_hears_follows_what_it_asks_for(service: Service) -> None:
    """A change of types counts from the next event on, by PATCH and by PUT."""
    endpoint = an_endpoint(service, "user.*")
    shop.a_product(service)
    changed = service.call("PATCH", at(endpoint), {"eventTypes": ["product.*"]}).json
    shop.an_order(service)
    assert heard(service, endpoint) == ["product.created"]
    service.call("PUT", at(endpoint), changed | {"eventTypes": ["user.created"]})
    shop.an_order(service)
    assert heard(service, endpoint) == ["product.created", "user.created"]
    assert service.call("PATCH", at(endpoint), {"eventTypes": None}).json["eventTypes"] == ["*"]


def test_disabled_is_told_nothing_until_enabled(service: Service) -> None:
    """DISABLED queues nothing more and says why; what waited stays; ENABLED again starts afresh."""
    endpoint = an_endpoint(service, "user.*")
    shop.a_user(service)
    disabled = service.call("PATCH", at(endpoint), {"status": "DISABLED"}).json
    assert (disabled["status"], disabled["disabledReason"]) == ("DISABLED", "Disabled by request.")
    again = service.call("PATCH", at(endpoint), {"status": "DISABLED", "eventTypes": ["user.created"]}).json
    assert again["disabledReason"] == "Disabled by request."
    shop.a_user(service)
    assert [each["status"] for each in queued(service, endpoint)] == ["PENDING"]
    service.rows(
        f"UPDATE webhook_endpoints SET failing_since = '2026-01-01T00:00:00.000Z' WHERE id = '{endpoint['id']}'"
        " RETURNING id"
    )
    enabled = service.call("PATCH", at(endpoint), {"status": "ENABLED"}).json
    assert (enabled["status"], enabled["disabledReason"]) == ("ENABLED", None)
    assert service.rows(f"SELECT failing_since FROM webhook_endpoints WHERE id = '{endpoint['id']}'") == [
        (None,)
    ]
    shop.a_user(service)
    assert len(queued(service, endpoint)) == 2


def test_the_reason_stays_as_long_as_it_holds(service: Service) -> None:
    """An endpoint that the service disabled keeps its reason through every change but being enabled."""
    endpoint = an_endpoint(service)
    service.rows(
        "UPDATE webhook_endpoints SET status = 'DISABLED', disabled_reason = 'Nothing but failures.'"
        f" WHERE id = '{endpoint['id']}' RETURNING id"
    )
    for given in ({"description": "x"}, {"status": "DISABLED"}, {"disabledReason": "Mine"}):
        changed = service.call("PATCH", at(endpoint), given).json
        assert changed["disabledReason"] == "Nothing but failures."
    assert service.call("PATCH", at(endpoint), {"status": None}).json["disabledReason"] is None


def test_the_reason_cannot_be_given(service: Service) -> None:
    """Why an endpoint is disabled is the service's to say: a body's is ignored."""
    made = an_endpoint(service, status="DISABLED", disabledReason="Mine")
    assert made["disabledReason"] == "Disabled by request."
    assert service.call("PUT", at(made), body(disabledReason="Mine")).json["disabledReason"] is None


def test_what_was_made_can_be_sent_back(service: Service) -> None:
    """The answer that made an endpoint, its secret included, is a body that changes nothing."""
    endpoint = an_endpoint(service, "user.*", description="Ours")
    tag = service.get(at(endpoint)).headers["etag"]
    for method, given in (
        ("PUT", endpoint),
        ("PATCH", endpoint),
        ("PATCH", {}),
        ("PATCH", {"status": "ENABLED"}),
    ):
        reply = service.call(method, at(endpoint), given, if_match=tag)
        assert (reply.status, reply.headers["etag"]) == (200, tag), (method, given)
        assert "secret" not in reply.json
    assert list(secrets_of(service, endpoint).values()) == ["CURRENT"]


def test_an_endpoint_changes_only_as_it_was_seen(service: Service) -> None:
    """If-Match holds against another's change, and each change has a new ETag."""
    endpoint = an_endpoint(service)
    tag = service.get(at(endpoint)).headers["etag"]
    assert service.get(at(endpoint), if_none_match=tag).status == 304
    changed = service.call("PATCH", at(endpoint), {"description": "Ours"}, if_match=tag)
    assert (changed.status, changed.headers["etag"] != tag) == (200, True)
    for method in ("PUT", "PATCH", "DELETE"):
        given = None if method == "DELETE" else body()
        assert service.call(method, at(endpoint), given, if_match=tag).status == 412
    assert service.call("DELETE", at(endpoint), if_match=changed.headers["etag"]).status == 204


def test_a_put_sets_what_it_leaves_out_to_its_default(service: Service) -> None:
    """A PUT that says the URL alone sets types, content type, description and status anew."""
    endpoint = an_endpoint(
        service, "user.*", description="x", contentType="application/json", status="DISABLED"
    )
    replaced = service.call("PUT", at(endpoint), body()).json
    assert (replaced["eventTypes"], replaced["description"]) == (["*"], None)
    assert (replaced["contentType"], replaced["status"]) == ("application/cloudevents+json", "ENABLED")
    shop.a_user(service)
    assert heard(service, endpoint) == ["user.created"]


def test_a_deleted_endpoint_is_gone_for_good(service: Service) -> None:
    """DELETE hides an endpoint with its secrets, forgets their values and queues nothing more for it."""
    endpoint = an_endpoint(service, "user.*")
    service.made(f"{at(endpoint)}/secrets", {})
    shop.a_user(service)
    assert service.call("DELETE", at(endpoint)).status == 204
    shop.a_user(service)
    assert len(queued(service, endpoint)) == 1
    for path in (at(endpoint), f"{at(endpoint)}/secrets"):
        assert service.get(path).status == 404
    assert service.call("DELETE", at(endpoint)).status == 404
    assert service.post(f"{at(endpoint)}/secrets", {}).status == 404
    where = f"WHERE endpoint_id = '{endpoint['id']}'"
    assert service.rows(f"SELECT DISTINCT status, sealed FROM webhook_secrets {where}") == [("RETIRED", None)]
    assert service.rows(f"SELECT * FROM webhook_subscriptions {where}") == []


def test_changes_at_once_leave_what_one_of_them_said(service: Service) -> None:
    """Endpoints changed by many at once are subscribed to exactly what they show in the end."""
    endpoint = an_endpoint(service)
    names = [["user.*"], ["order.placed", "product.*"], ["*"]]
    changes: list[tuple[Any, ...]] = [("PATCH", at(endpoint), {"eventTypes": each}) for each in names * 4]
    changes += [("PATCH", at(endpoint), {"status": status}) for status in ("DISABLED", "ENABLED") * 3]
    assert {reply.status for reply in service.calls(*changes)} <= {200, 409}
    shown = shop.get(service, at(endpoint))
    kept = service.rows(f"SELECT pattern FROM webhook_subscriptions WHERE endpoint_id = '{endpoint['id']}'")
    wanted = set(shown["eventTypes"]) if shown["status"] == "ENABLED" else set()
    assert {row[0] for row in kept} == wanted


# --- who may, and what stays secret ---


def test_webhooks_have_scopes_of_their_own(service: Service) -> None:
    """webhooks:write makes endpoints, webhooks:read sees them; a key that acts for a user has no business here."""
    writer, reader = service.new_key("webhooks:write"), service.new_key("webhooks:read")
    made = service.made(ENDPOINTS, body(), key=writer)
    assert service.get(at(made), key=reader).status == 200
    assert service.get(at(made), key=writer).status == 403
    assert service.post(ENDPOINTS, body(), key=reader).status == 403
    acting = service.new_key("admin", user=shop.a_user(service)["id"])
    for path in (ENDPOINTS, at(made), f"{at(made)}/secrets", DELIVERIES, "/v1/webhook-redeliveries"):
        assert service.get(path, key=acting).status == 403


def test_a_secret_is_nowhere_in_the_clear(engine: str, new_service: Callable[..., Service]) -> None:
    """No column, no list, no item, no event and no log line holds a secret; nor does what is kept for a repetition."""
    service = new_service(engine)
    made = service.made(ENDPOINTS, body(), idempotency_key="one")
    rotated = service.made(f"{at(made)}/secrets", {}, idempotency_key="two")
    shop.a_user(service)
    texts = [
        everything(service),
        *(service.get(path).body.decode() for path in (ENDPOINTS, at(made), f"{at(made)}/secrets")),
        *(service.get(path).body.decode() for path in (DELIVERIES, "/v1/events")),
        service.get(f"{at(made)}/secrets/{rotated['id']}").body.decode(),
        b"".join(service.lines).decode(),
    ]
    for secret in (made["secret"], rotated["value"]):
        assert len(secret) > 40
        for text in texts:
            assert secret not in text
            assert secret.removeprefix("whsec_") not in text


def test_a_repeated_request_shows_the_same_secret(service: Service) -> None:
    """The answer under an idempotency key is the first one whole, and there is one endpoint."""
    given, key = body(), shop.unique()
    first = service.post(ENDPOINTS, given, idempotency_key=key)
    again = service.post(ENDPOINTS, given, idempotency_key=key)
    assert (again.status, again.body, again.headers["idempotency-replayed"]) == (201, first.body, "true")
    assert service.post(ENDPOINTS, body(), idempotency_key=key).status == 422
    urls = [each["url"] for each in shop.walked(service, ENDPOINTS)]
    assert urls.count(given["url"]) == 1


def test_without_a_key_to_seal_with_there_is_no_endpoint(
    engine: str, new_service: Callable[..., Service], tmp_path: Path
) -> None:
    """Where secrets cannot be sealed the answer is 503 and nothing is left, not even a subscription."""
    service = new_service(engine)
    performer = service.app.rest.performer
    performer.services = replace(performer.services, sealer=Sealer((), tmp_path / "nowhere" / "key"))
    assert service.post(ENDPOINTS, body()).status == 503
    for table in ("webhook_endpoints", "webhook_secrets", "webhook_subscriptions"):
        assert service.rows(f"SELECT * FROM {table}") == []


def test_endpoints_are_listed_by_status(service: Service) -> None:
    """The list shows what is there, filtered by status."""
    enabled, disabled = an_endpoint(service), an_endpoint(service, status="DISABLED")
    shown = {each["id"]: each["status"] for each in shop.walked(service, f"{ENDPOINTS}?status=DISABLED")}
    assert disabled["id"] in shown
    assert enabled["id"] not in shown
    assert set(shown.values()) == {"DISABLED"}


def test_a_second_version_of_the_api_calls_the_url_as_it_does(new_service: Callable[..., Service]) -> None:
    """Where a version renames the URL, that member is looked up, judged and named in what is refused."""
    versions = (
        Version(1, "2026-01-01"),
        Version(2, "2027-05-01", (Rename("webhook_endpoint", "url", "target"),)),
    )
    service = new_service("sqlite", versions=versions)
    made = service.made("/v2/webhook-endpoints", {"target": URL})
    assert (made["target"], "url" in made) == (URL, False)
    reply = service.post("/v2/webhook-endpoints", {"target": "https://127.0.0.1/"})
    assert shop.fields_of(reply.json) == {"target"}
    assert json.loads(service.get(at(made)).body)["url"] == made["target"]
