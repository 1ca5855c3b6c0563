"""Idempotency keys: one write and one answer for one request, however often it is sent."""

import asyncio
import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import shop
from tests.given_clock import DAY, SECOND, GivenClock
from tests.service import Reply, Service
from tradepost.domain.product import Product
from tradepost.storage.database import Writing
from tradepost.storage.record_statements import statements_of

SHOWN = ("content-type", "etag", "location", "cache-control")


def _same(first: Reply, again: Reply) -> bool:
    return (first.status, first.body) == (again.status, again.body) and all(
        first.headers.get(name) == again.headers.get(name) for name in SHOWN
    )


def _users(service: Service, body: dict[str, Any]) -> int:
    return len(shop.walked(service, f"/v1/users?email={body['email']}"))


def test_the_same_request_gets_the_first_answer_again(service: Service) -> None:
    """A POST repeated under its key is answered as at first, marked as a replay, and makes nothing more."""
    key, body = shop.unique(), shop.user_body()
    first = service.post("/v1/users", body, idempotency_key=key)
    assert first.status == 201
    assert "idempotency-replayed" not in first.headers
    for _ in range(3):
        again = service.post("/v1/users", body, idempotency_key=key)
        assert _same(first, again)
        assert again.headers["idempotency-replayed"] == "true"
        assert again.headers["x-request-id"] != first.headers["x-request-id"]
    assert _users(service, body) == 1
    assert shop.told(service, f"users/{first.json['id']}") == ["user.created"]


def test_every_post_takes_a_key(service: Service) -> None:
    """Any collection that can be posted to keeps the rule."""
    user, product = shop.a_user(service), shop.a_product(service)
    order = shop.an_order(service, (product, 1), user=user)
    line = {"productId": product["id"], "quantity": 1}
    for path, body in {
        "/v1/products": shop.product_body(),
        "/v1/orders": shop.order_body(user, (product, 1)),
        f"/v1/users/{user['id']}/addresses": shop.address_body(),
        f"/v1/orders/{order['id']}/line-items": line,
        "/v1/line-items": {**line, "orderId": order["id"]},
        "/v1/api-keys": {"name": "n", "scopes": ["users:read"]},
    }.items():
        key = shop.unique()
        first, again = (service.post(path, body, idempotency_key=key) for _ in range(2))
        assert first.status == 201
        assert _same(first, again), path
        assert again.headers["idempotency-replayed"] == "true"
    assert shop.stock_of(service, product) == 100 - 4
    assert len(shop.get(service, f"/v1/orders/{order['id']}")["lineItems"]) == 3


def test_without_a_key_nothing_is_the_same(service: Service) -> None:
    """POST is not idempotent by itself: without a key each one makes an order."""
    user, product = shop.a_user(service), shop.a_product(service)
    body = shop.order_body(user, (product, 1))
    assert service.made("/v1/orders", body)["id"] != service.made("/v1/orders", body)["id"]


def test_a_key_may_be_bare_or_quoted(service: Service) -> None:
    """The key is the text, whether it came bare or as a quoted string."""
    key, body = shop.unique(), shop.user_body()
    first = service.post("/v1/users", body, idempotency_key=key)
    for spelled in (f'"{key}"', f"  {key} ", f' "{key}"'):
        again = service.post("/v1/users", body, idempotency_key=spelled)
        assert _same(first, again)
        assert again.headers["idempotency-replayed"] == "true"
    assert service.post("/v1/users", shop.user_body(), idempotency_key=f'"{key}x"').status == 201


@pytest.mark.parametrize("quoted", ["{}", '"{}"'])
def test_a_key_has_1_to_255_characters(service: Service, quoted: str) -> None:
    """One character and 255 are taken; none and 256 are 400."""
    long = shop.unique() + "k" * 300
    one = service.post(
        "/v1/users", shop.user_body(), key=service.new_key("admin"), idempotency_key=quoted.format("k")
    )
    assert one.status == 201
    body = shop.user_body()
    first = service.post("/v1/users", body, idempotency_key=quoted.format(long[:255]))
    assert first.status == 201
    assert _same(first, service.post("/v1/users", body, idempotency_key=quoted.format(long[:255])))
    for bad in ("", long[:256]):
        other = shop.user_body()
        assert service.post("/v1/users", other, idempotency_key=quoted.format(bad)).status == 400
        assert _users(service, other) == 0


@pytest.mark.parametrize("bad", ["a\tb", "a\x00b", "a\x7fb"])
def test_a_key_is_printable(service: Service, bad: str) -> None:
    """Control characters make a bad header."""
    assert service.post("/v1/users", shop.user_body(), idempotency_key=bad).status == 400


def test_another_request_under_a_key_is_422(service: Service) -> None:
    """The same key with another body or another address is 422 and does nothing."""
    key, body = shop.unique(), shop.user_body()
    first = service.post("/v1/users", body, idempotency_key=key)
    other = shop.user_body()
    owner = shop.a_user(service)
    for path, sent in (
        ("/v1/users", other),
        ("/v1/users", {**body, "status": "DEACTIVATED"}),
        ("/v1/products", shop.product_body()),
        (f"/v1/users/{owner['id']}/addresses", shop.address_body()),
        ("/v1/users", {}),
    ):
        reply = service.post(path, sent, idempotency_key=key)
        assert reply.status == 422, path
        assert reply.json["type"].endswith("/problems/idempotency-key-reused")
    assert _users(service, other) == 0
    assert _same(first, service.post("/v1/users", body, idempotency_key=key))


def test_the_same_body_at_another_parents_address_is_another_request(service: Service) -> None:
    """What a request is, is its address too: a key used for one parent is not used for the next."""
    key = shop.unique()
    one, other = shop.a_user(service), shop.a_user(service)
    body = shop.address_body()
    assert service.post(f"/v1/users/{one['id']}/addresses", body, idempotency_key=key).status == 201
    assert service.post(f"/v1/users/{other['id']}/addresses", body, idempotency_key=key).status == 422


def test_only_successes_are_kept(service: Service) -> None:
    """A refused request leaves its key free, for the same request later or for a better one."""
    key, product = shop.unique(), shop.a_product(service, stock=0)
    body = shop.order_body(shop.a_user(service), (product, 1))
    for sent, status in ((body, 422), (b"{", 400), ({}, 422), (body, 422)):
        reply = service.post("/v1/orders", sent, idempotency_key=key)
        assert (reply.status, "idempotency-replayed" in reply.headers) == (status, False)
    service.call("PATCH", f"/v1/products/{product['id']}", {"stock": 1})
    assert service.post("/v1/orders", body, idempotency_key=key).status == 201
    assert shop.stock_of(service, product) == 0


def test_a_duplicate_is_not_kept(service: Service) -> None:
    """A 409 is not kept either: once the email is free the same request succeeds."""
    key, taken = shop.unique(), shop.a_user(service)
    body = shop.user_body(email=taken["email"])
    assert service.post("/v1/users", body, idempotency_key=key).status == 409
    service.call("DELETE", f"/v1/users/{taken['id']}")
    assert service.post("/v1/users", body, idempotency_key=key).status == 201


def test_a_key_belongs_to_its_api_key(service: Service) -> None:
    """Two callers may use the same text: neither meets the other's answers."""
    key = shop.unique()
    ours, theirs = shop.user_body(), shop.user_body()
    caller = service.new_key("users:write", "users:read")
    first = service.post("/v1/users", ours, idempotency_key=key)
    other = service.post("/v1/users", theirs, idempotency_key=key, key=caller)
    assert (first.status, other.status) == (201, 201)
    assert first.json["id"] != other.json["id"]
    assert _same(other, service.post("/v1/users", theirs, idempotency_key=key, key=caller))
    assert _same(first, service.post("/v1/users", ours, idempotency_key=key))


def test_scopes_are_judged_before_a_replay(service: Service) -> None:
    """Who may not make the request is not shown its answer."""
    key, body = shop.unique(), shop.user_body()
    service.post("/v1/users", body, idempotency_key=key)
    assert (
        service.post("/v1/users", body, idempotency_key=key, key=service.new_key("users:read")).status == 403
    )
    assert service.post("/v1/users", body, idempotency_key=key, key=None).status == 401


def test_an_answer_outlives_what_it_was_about(service: Service) -> None:
    """The first answer is given again though the item has changed or gone since."""
    key, body = shop.unique(), shop.user_body()
    first = service.post("/v1/users", body, idempotency_key=key)
    service.call("PATCH", first.headers["location"], {"name": "Grace"})
    assert _same(first, service.post("/v1/users", body, idempotency_key=key))
    service.call("DELETE", first.headers["location"])
    assert _same(first, service.post("/v1/users", body, idempotency_key=key))


def test_other_methods_need_no_key_and_take_none(service: Service) -> None:
    """Idempotency-Key is for POST: a repeated PATCH under one key is a PATCH."""
    user, key = shop.a_user(service), shop.unique()
    path = f"/v1/users/{user['id']}"
    for name in ("Grace", "Alan"):
        reply = service.call("PATCH", path, {"name": name}, idempotency_key=key)
        assert (reply.status, reply.json["name"]) == (200, name)
        assert "idempotency-replayed" not in reply.headers


def test_a_key_is_kept_for_a_day(engine: str, new_service: Callable[..., Service]) -> None:
    """Within 24 hours the answer is given again; after them the key is new."""
    clock = GivenClock()
    service = new_service(engine, clock=clock)
    user, product, key = shop.a_user(service), shop.a_product(service), shop.unique()
    body = shop.order_body(user, (product, 1))
    first = service.post("/v1/orders", body, idempotency_key=key)
    clock.move(DAY - SECOND)
    assert _same(first, service.post("/v1/orders", body, idempotency_key=key))
    clock.move(2 * SECOND)
    later = service.post("/v1/orders", body, idempotency_key=key)
    assert (later.status, "idempotency-replayed" in later.headers) == (201, False)
    assert later.json["id"] != first.json["id"]
    assert _same(later, service.post("/v1/orders", body, idempotency_key=key))
    assert service.post("/v1/orders", shop.order_body(user, (product, 2)), idempotency_key=key).status == 422


# --- secrets ---


def _everything_kept(service: Service) -> str:
    kept = service.rows("SELECT answer FROM idempotency_keys WHERE answer IS NOT NULL")
    return "\n".join(answer for (answer,) in kept)


def test_an_answer_with_a_secret_is_sealed_and_given_again(service: Service) -> None:
    """The new API key is in both answers and nowhere in the database, plain or as base64."""
    key = shop.unique()
    body = {"name": shop.unique(), "scopes": ["users:read"]}
    first, again = (service.post("/v1/api-keys", body, idempotency_key=key) for _ in range(2))
    assert first.status == 201
    assert _same(first, again)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["cache-control"] == "no-store"
    secret = again.json["key"].rpartition("_")[2]
    assert service.get("/v1/users?limit=1", key=again.json["key"]).status == 200
    kept = _everything_kept(service)
    assert secret not in kept
    for shift in range(3):
        encoded = base64.b64encode(b"x" * shift + secret.encode())[4:-4].decode()
        assert encoded not in kept
    rows = service.rows("SELECT * FROM api_keys")
    assert secret not in repr(rows)
    assert service.key.rpartition("_")[2] not in repr(rows)


def test_a_secret_is_not_in_the_file(new_service: Callable[..., Service]) -> None:
    """Neither the file of an embedded database nor its log holds a key that was given out."""
    service = new_service("sqlite")
    body = {"name": "n", "scopes": ["users:read"]}
    made = service.post("/v1/api-keys", body, idempotency_key=shop.unique()).json["key"].encode()
    plain_text = shop.unique().encode()
    shop.a_user(service, name=plain_text.decode())
    path = Path(service.database_url.removeprefix("sqlite:///"))
    whole = b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))
    assert plain_text in whole
    assert made not in whole
    assert made.rpartition(b"_")[2] not in whole
    assert service.key.encode() not in whole


def test_a_plain_answer_is_kept_once(service: Service) -> None:
    """What is kept is kept under its key, once, however often it is asked for."""
    key, body = shop.unique(), shop.user_body()
    for _ in range(4):
        service.post("/v1/users", body, idempotency_key=key)
    assert service.rows(f"SELECT count(*) FROM idempotency_keys WHERE key = '{key}'")[0][0] == 1


# --- at once ---


def _judged(replies: list[Reply]) -> Reply:
    """All are the one 201 or, while that was running, 409; returns the 201."""
    assert {reply.status for reply in replies} <= {201, 409}
    done = [reply for reply in replies if reply.status == 201]
    assert done
    assert all(_same(done[0], reply) for reply in done)
    assert sum("idempotency-replayed" not in reply.headers for reply in done) == 1
    for reply in replies:
        if reply.status == 409:
            assert reply.json["type"].endswith("/problems/idempotency-key-in-use")
    return done[0]


def test_twenty_identical_posts_at_once_are_one_order(service: Service) -> None:
    """Twenty POSTs at once under one key make one order and take its stock once."""
    user, product, key = shop.a_user(service), shop.a_product(service), shop.unique()
    body = shop.order_body(user, (product, 3))
    first = _judged(service.calls(*[("POST", "/v1/orders", body)] * 20, idempotency_key=key))
    orders = shop.walked(service, f"/v1/orders?userId={user['id']}")
    assert [order["id"] for order in orders] == [first.json["id"]]
    assert shop.stock_of(service, product) == 97
    assert shop.told(service, f"orders/{first.json['id']}") == ["order.placed"]
    assert _same(first, service.post("/v1/orders", body, idempotency_key=key))


def test_different_requests_at_once_under_one_key_are_one(service: Service) -> None:
    """Of different requests at once under one key one is done; the others are 409 or 422."""
    key = shop.unique()
    bodies = [shop.user_body() for _ in range(8)]
    replies = service.calls(*[("POST", "/v1/users", body) for body in bodies], idempotency_key=key)
    first, *others = sorted(reply.status for reply in replies)
    assert first == 201
    assert set(others) <= {409, 422}
    assert sum(_users(service, body) for body in bodies) == 1


@pytest.fixture
def neighbours(engine: str, new_database: Callable[[str], str]) -> Iterator[tuple[Service, Service]]:
    """Two services on one database."""
    url = new_database(engine)
    one, other = Service(url), Service(url)
    yield one, other
    other.stop()
    one.stop()


def test_a_key_holds_for_every_process(neighbours: tuple[Service, Service]) -> None:
    """Identical POSTs to two services on one database at once are one order, and both replay it."""
    one, other = neighbours
    user, product, key = shop.a_user(one), shop.a_product(one), shop.unique()
    body = shop.order_body(user, (product, 1))
    headers = {"idempotency-key": key, "authorization": f"Bearer {one.key}"}
    running = [
        service.begin(service._call("POST", "/v1/orders", body, None, headers))
        for service in (one, other) * 10
    ]
    first = _judged([each.result(60) for each in running])
    assert len(shop.walked(one, f"/v1/orders?userId={user['id']}")) == 1
    assert shop.stock_of(other, product) == 99
    for service in neighbours:
        assert _same(first, service.call("POST", "/v1/orders", body, key=one.key, idempotency_key=key))


def test_a_request_still_running_is_409(new_service: Callable[..., Service]) -> None:
    """While the first request under a key waits for a product that another holds, the next is 409.

    On PostgreSQL alone: an embedded transaction runs from end to end and waits for nothing.
    """
    service = new_service("postgresql")
    user, product, key = shop.a_user(service), shop.a_product(service), shop.unique()
    body = shop.order_body(user, (product, 1))
    held, release = asyncio.Event(), asyncio.Event()

    async def hold(tx: Writing) -> None:
        await tx.row(statements_of(Product).lock, id=product["id"])
        held.set()
        await release.wait()

    holding = service.begin(service.app.rest.performer.database.write(hold))
    service.run(held.wait())
    headers = {"idempotency-key": key}
    first = service.begin(service._call("POST", "/v1/orders", body, "", headers))
    second = service.post("/v1/orders", body, idempotency_key=key)
    assert second.status == 409
    assert second.json["type"].endswith("/problems/idempotency-key-in-use")
    service._loop.call_soon_threadsafe(release.set)
    holding.result(60)
    assert first.result(60).status == 201
    assert service.post("/v1/orders", body, idempotency_key=key).headers["idempotency-replayed"] == "true"
