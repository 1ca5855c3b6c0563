"""Access: who is let in, what each scope is for, what a key that acts for a user sees, and how keys end."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tests import shop
from tests.given_clock import SECOND, GivenClock, GivenTime
from tests.service import Reply, Service
from tradepost import catalogue
from tradepost.domain.scope import SCOPES
from tradepost.resource import Resource

# Which scopes a record goes with, as CONTRACT 5 has it: (to read, to write).
LAW: dict[str, tuple[str, str]] = {
    "user": ("users:read", "users:write"),
    "address": ("users:read", "users:write"),
    "product": ("products:read", "products:write"),
    "order": ("orders:read", "orders:write"),
    "line_item": ("orders:read", "orders:write"),
    "event": ("events:read", "events:read"),
    "api_key": ("keys:write", "keys:write"),
    "webhook_endpoint": ("webhooks:read", "webhooks:write"),
    "webhook_secret": ("webhooks:read", "webhooks:write"),
    "webhook_delivery": ("webhooks:read", "webhooks:write"),
    "webhook_redelivery": ("webhooks:read", "webhooks:write"),
}
WRITES = ("POST", "PUT", "PATCH", "DELETE")


# --- credentials ---


def test_no_key_is_401_with_a_challenge(service: Service) -> None:
    """Without credentials: 401 and a Bearer challenge without an error code (RFC 6750, 3.1)."""
    for method, path, body in (
        ("GET", "/v1/users", None),
        ("POST", "/v1/orders", {}),
        ("DELETE", "/v1/users/x", None),
    ):
        reply = service.call(method, path, body, key=None)
        assert reply.status == 401
        assert reply.headers["www-authenticate"].startswith("Bearer")
        assert "error" not in reply.headers["www-authenticate"]


def test_bad_credentials_are_401_with_an_error(service: Service) -> None:
    """Unknown, cut, lengthened and altered keys and other schemes: 401, challenged with invalid_token."""
    key = service.new_key("admin")
    secret = key.rpartition("_")[2]
    fields = [
        "Bearer",
        "Bearer ",
        "Bearer nope",
        "Bearer tp_",
        "Bearer tp_unknown1_" + "a" * 32,
        f"Bearer {key}x",
        f"Bearer {key[:-1]}",
        f"Bearer {key.upper()}",
        f"Bearer {key.replace(secret, secret[::-1])}",
        f"Bearer {key.rpartition('_')[0]}_",
        f"Bearer {key} {key}",
        f"Bearer {key}, Bearer {key}",
        f"Basic {key}",
        f"Token {key}",
        key,
        "Bearer é",
        "Bearer " + "x" * 5000,
        "",
    ]
    for field in fields:
        reply = service.get("/v1/users", key=None, authorization=field)
        assert reply.status == 401, field
        assert reply.headers["www-authenticate"].startswith("Bearer")
        if field:
            assert 'error="invalid_token"' in reply.headers["www-authenticate"], field


def test_a_401_does_not_say_why_a_key_is_bad(service: Service) -> None:
    """An unknown key and a revoked one are told apart by nobody."""
    made = service.made("/v1/api-keys", {"name": "n", "scopes": ["users:read"]})
    service.call("DELETE", f"/v1/api-keys/{made['id']}")
    revoked, unknown = (
        service.get("/v1/users", key=made["key"]),
        service.get("/v1/users", key="tp_unknown1_a"),
    )
    assert (revoked.status, unknown.status) == (401, 401)
    assert revoked.json == unknown.json
    assert revoked.headers["www-authenticate"] == unknown.headers["www-authenticate"]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_written_in_any_case(service: Service, scheme: str) -> None:
    """Authentication schemes are case-insensitive (RFC 9110, 11.1)."""
    assert service.get("/v1/users?limit=1", key=None, authorization=f"{scheme} {service.key}").status == 200


def test_a_key_in_the_address_is_no_credential(service: Service) -> None:
    """A key is taken from the Authorization header alone."""
    for name in ("access_token", "key", "api_key"):
        assert service.get(f"/v1/users?{name}={service.key}", key=None).status == 401


def test_documents_need_no_key(service: Service) -> None:
    """What explains the service is open to all."""
    for path in ("/versions", "/livez", "/readyz", "/problems/invalid"):
        assert service.get(path, key=None).status == 200, path


# --- scopes ---


class Address(NamedTuple):
    """A method at an address of the catalogue, and the scope the law asks for."""

    kind: str
    method: str
    path: str
    scope: str


def _addresses() -> Iterator[Address]:
    for resource in catalogue.RESOURCES:
        read, write = LAW.get(resource.record.kind, (resource.read_scope, resource.write_scope))
        for collection in _collections(resource):
            for path, methods in (
                (collection, resource.collection_methods),
                (f"{collection}/nothing", resource.item_methods),
            ):
                for method in methods:
                    if method != "OPTIONS":
                        scope = write if method in WRITES else read
                        yield Address(resource.record.kind, method, path, scope)


def _collections(resource: Resource) -> Iterator[str]:
    if resource.top:
        yield f"/v1/{resource.segment}"
    if resource.parent:
        parent = resource.parent.parent.plural.replace("_", "-")
        yield f"/v1/{parent}/nothing/{resource.segment}"


def test_the_law_says_which_scope_each_resource_needs() -> None:
    """Every resource of this part of the law is in the catalogue."""
    assert set(LAW) <= {resource.record.kind for resource in catalogue.RESOURCES}


@pytest.fixture(scope="module")
def scoped(service: Service) -> dict[str, str]:
    """A key for each scope there is."""
    return {scope: service.new_key(scope) for scope in SCOPES}


@pytest.mark.parametrize("address", sorted(set(_addresses())), ids=lambda each: f"{each.method} {each.path}")
def test_every_method_needs_its_scope(service: Service, scoped: dict[str, str], address: Address) -> None:
    """With the scope of the law or admin a request goes through; with any other it is 403 naming the scope."""
    body: Any = {} if address.method in ("POST", "PUT", "PATCH") else None
    for held, key in scoped.items():
        reply = service.call(address.method, address.path, body, key=key)
        if held in (address.scope, "admin"):
            assert reply.status not in (401, 403, 405), (held, reply)
        else:
            assert reply.status == 403, (held, reply)
            if address.method != "HEAD":
                assert address.scope in reply.json["detail"]
            assert 'error="insufficient_scope"' in reply.headers["www-authenticate"]
            assert f'scope="{address.scope}"' in reply.headers["www-authenticate"]


def test_reading_does_not_come_with_writing(service: Service) -> None:
    """users:write alone changes a user and does not read one, also where both would be of use."""
    writer = service.new_key("users:write")
    made = service.post("/v1/users", shop.user_body(), key=writer)
    assert made.status == 201
    path = f"/v1/users/{made.json['id']}"
    assert service.call("PATCH", path, {"name": "Grace"}, key=writer).status == 200
    assert service.get(path, key=writer).status == 403


def test_an_order_needs_no_scope_but_its_own(service: Service) -> None:
    """orders:write places an order of a user and products that its key could not read."""
    user, product = shop.a_user(service), shop.a_product(service)
    key = service.new_key("orders:write")
    assert service.post("/v1/orders", shop.order_body(user, (product, 1)), key=key).status == 201


# --- keys that act for a user ---


class Mine(NamedTuple):
    """A user's key, and what is theirs and what another's."""

    service: Service
    key: str
    user: Any
    address: Any
    order: Any
    other_user: Any
    other_address: Any
    other_order: Any
    product: Any

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        return self.service.call(method, path, body, key=self.key, **headers)


@pytest.fixture
def mine(service: Service) -> Mine:
    product = shop.a_product(service)
    users = [shop.a_user(service) for _ in range(2)]
    addresses = [shop.an_address(service, user) for user in users]
    orders = [shop.an_order(service, (product, 1), (product, 2), user=user) for user in users]
    key = service.new_key("admin", user=users[0]["id"])
    return Mine(service, key, users[0], addresses[0], orders[0], users[1], addresses[1], orders[1], product)


def _paths(user: Any, address: Any, order: Any) -> dict[str, Any]:
    """Every address of a user's things, with a body that would change what is there."""
    line = order["lineItems"][0]
    return {
        f"/v1/users/{user['id']}/addresses/{address['id']}": {**address, "city": "York"},
        f"/v1/orders/{order['id']}/line-items/{line['id']}": {**line, "quantity": 5},
        f"/v1/line-items/{line['id']}": {**line, "quantity": 6},
        f"/v1/orders/{order['id']}": {**order, "status": "CANCELLED"},
        f"/v1/users/{user['id']}": {**user, "name": "Grace"},
    }


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_user_key_sees_and_changes_what_is_its_own(mine: Mine, method: str) -> None:
    """The user's record, addresses, orders and line items are read and changed with the user's key."""
    for path, body in _paths(mine.user, mine.address, mine.order).items():
        assert mine.call("GET", path).status == 200, path
        assert mine.call(method, path, body).status == 200, path
    assert mine.call("POST", f"/v1/users/{mine.user['id']}/addresses", shop.address_body()).status == 201
    placed = mine.call("POST", "/v1/orders", shop.order_body(mine.user, (mine.product, 1)))
    assert placed.status == 201
    line = {"productId": mine.product["id"], "quantity": 1}
    assert mine.call("POST", f"/v1/orders/{placed.json['id']}/line-items", line).status == 201
    assert mine.call("POST", "/v1/line-items", {**line, "orderId": placed.json["id"]}).status == 201
    assert mine.call("DELETE", f"/v1/orders/{placed.json['id']}").status == 204


def test_to_a_user_key_others_things_are_not_there(mine: Mine) -> None:
    """What is another user's is 404 to read, change and remove, whatever conditions are sent; nothing changes."""
    paths = _paths(mine.other_user, mine.other_address, mine.other_order)
    before = {path: mine.service.get(path).body for path in paths}
    for path, body in paths.items():
        for headers in ({}, {"if_match": '"x"'}, {"if_none_match": "*"}):
            for method, sent in (
                ("GET", None),
                ("HEAD", None),
                ("PUT", body),
                ("PATCH", body),
                ("DELETE", None),
            ):
                reply = mine.call(method, path, sent, **headers)
                assert (reply.status, "etag" in reply.headers) == (404, False), (method, path, headers)
    for path, body in (
        (f"/v1/users/{mine.other_user['id']}/addresses", shop.address_body()),
        (f"/v1/orders/{mine.other_order['id']}/line-items", {"productId": mine.product["id"], "quantity": 1}),
    ):
        assert mine.call("GET", path).status == 404
        assert mine.call("POST", path, body).status == 404
    assert {path: mine.service.get(path).body for path in paths} == before


def test_to_a_user_key_others_are_unknown_in_bodies_too(mine: Mine) -> None:
    """An order for another user, of another's address, or a line of another's order: named as unknown, as if not there."""
    stock = shop.stock_of(mine.service, mine.product)
    line = {"productId": mine.product["id"], "quantity": 1}
    for method, path, body, field in (
        ("POST", "/v1/orders", shop.order_body(mine.other_user, (mine.product, 1)), "userId"),
        (
            "POST",
            "/v1/orders",
            shop.order_body(mine.user, (mine.product, 1), shippingAddressId=mine.other_address["id"]),
            "shippingAddressId",
        ),
        ("POST", "/v1/line-items", {**line, "orderId": mine.other_order["id"]}, "orderId"),
        (
            "PATCH",
            f"/v1/orders/{mine.order['id']}",
            {"shippingAddressId": mine.other_address["id"]},
            "shippingAddressId",
        ),
    ):
        reply = mine.call(method, path, body)
        assert (reply.status, shop.fields_of(reply.json)) == (422, {field})
    unknown = mine.call("POST", "/v1/line-items", {**line, "orderId": "nothing"})
    there = mine.call("POST", "/v1/line-items", {**line, "orderId": mine.other_order["id"]})
    assert unknown.json["errors"] == there.json["errors"]
    assert shop.stock_of(mine.service, mine.product) == stock


def test_a_user_key_lists_its_own_alone(mine: Mine) -> None:
    """Lists, however sorted and filtered, hold what is the user's."""

    def listed(path: str) -> set[str]:
        return {each["id"] for each in shop.walked(mine.service, path, key=mine.key)}

    other = mine.other_user["id"]
    own_lines = {line["id"] for line in mine.order["lineItems"]}
    for sort in ("", "?sort=-updatedAt", "?sort=createdAt&limit=1"):
        assert listed(f"/v1/users{sort}") == {mine.user["id"]}
        assert listed(f"/v1/orders{sort}") == {mine.order["id"]}
        assert listed(f"/v1/line-items{sort}") == own_lines
    for path in (
        f"/v1/orders?userId={other}",
        f"/v1/users?email={mine.other_user['email']}",
        f"/v1/line-items?orderId={mine.other_order['id']}",
    ):
        assert listed(path) == set()
    assert listed(f"/v1/line-items?productId={mine.product['id']}") == own_lines
    assert listed(f"/v1/users/{mine.user['id']}/addresses") == {mine.address["id"]}


def test_a_cursor_of_a_wider_key_shows_a_user_key_nothing_more(mine: Mine) -> None:
    """A cursor given to an operator is refused, or shows a user's key its own alone."""
    cursor = shop.get(mine.service, "/v1/users?limit=1")["next"]
    reply = mine.call("GET", f"/v1/users?cursor={cursor}")
    assert reply.status == 400 or {each["id"] for each in reply.json["items"]} <= {mine.user["id"]}


def test_a_user_key_reads_products_and_nothing_else(mine: Mine) -> None:
    """A user's key reads products; it changes none, sees no events and no keys, makes no users and no keys."""
    path = f"/v1/products/{mine.product['id']}"
    assert mine.call("GET", path).status == 200
    assert mine.call("GET", "/v1/products").status == 200
    event = shop.events_of(mine.service, f"users/{mine.user['id']}")[0]["id"]
    for method, refused, body in (
        ("POST", "/v1/products", shop.product_body()),
        ("PUT", path, mine.product),
        ("PATCH", path, {"price": 0}),
        ("DELETE", path, None),
        ("GET", "/v1/events", None),
        ("GET", f"/v1/events/{event}", None),
        ("GET", "/v1/api-keys", None),
        ("GET", "/v1/api-keys/nothing", None),
        ("POST", "/v1/api-keys", {"name": "n", "scopes": ["users:read"], "userId": mine.user["id"]}),
        ("DELETE", "/v1/api-keys/nothing", None),
        ("POST", "/v1/users", shop.user_body()),
    ):
        assert mine.call(method, refused, body).status == 403, (method, refused)
    assert shop.get(mine.service, path) == mine.product | {
        name: shop.get(mine.service, path)[name] for name in ("stock", "updatedAt")
    }


def test_a_user_key_has_no_more_than_its_scopes(mine: Mine) -> None:
    """A user's key is bound by its scopes as any other."""
    key = mine.service.new_key("orders:read", user=mine.user["id"])
    assert mine.service.get(f"/v1/orders/{mine.order['id']}", key=key).status == 200
    assert mine.service.call("PATCH", f"/v1/orders/{mine.order['id']}", {}, key=key).status == 403
    assert mine.service.get(f"/v1/users/{mine.user['id']}", key=key).status == 403
    assert mine.service.get("/v1/products", key=key).status == 403


# --- keys as a resource ---


def test_a_key_is_shown_once(service: Service) -> None:
    """The key is in the 201 that made it and nowhere else; its prefix stays to be recognised by."""
    body = {"name": shop.unique(), "scopes": ["users:read", "orders:read"]}
    made = service.made("/v1/api-keys", body)
    assert made["key"].startswith(f"tp_{made['prefix']}_")
    assert len(made["key"].rpartition("_")[2]) >= 32
    shown = shop.get(service, f"/v1/api-keys/{made['id']}")
    assert shown == {name: value for name, value in made.items() if name != "key"}
    assert (shown["scopes"], shown["userId"], shown["expiresAt"], shown["revokedAt"]) == (
        body["scopes"],
        None,
        None,
        None,
    )
    (listed,) = shop.walked(service, f"/v1/api-keys?prefix={made['prefix']}")
    assert listed == shown
    assert service.get("/v1/users?limit=1", key=made["key"]).status == 200


def test_the_answer_that_shows_a_key_is_kept_by_no_cache(service: Service) -> None:
    """A 201 with a secret says no-store."""
    reply = service.post("/v1/api-keys", {"name": "n", "scopes": ["users:read"]})
    assert reply.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "bad",
    [
        {"scopes": []},
        {"scopes": ["sudo"]},
        {"scopes": "users:read"},
        {"scopes": None},
        {"userId": "nobody"},
        {"expiresAt": "2001-01-01T00:00:00Z"},
        {"expiresAt": "tomorrow"},
        {"expiresAt": 5},
        {"name": ""},
    ],
)
def test_a_bad_key_is_422(service: Service, bad: dict[str, Any]) -> None:
    """Unknown scopes, none at all, an unknown user, an expiry in the past: 422 naming the member."""
    reply = service.post("/v1/api-keys", {"name": "n", "scopes": ["users:read"], **bad})
    assert reply.status == 422
    assert {field.partition("[")[0] for field in shop.fields_of(reply.json)} == set(bad)


def test_no_key_makes_one_that_may_do_more(service: Service) -> None:
    """A key gives away what it holds; a scope it lacks is 403 naming it, whatever else is asked for."""
    for held in SCOPES:
        maker = service.new_key("keys:write", held)
        for wanted in SCOPES:
            reply = service.post("/v1/api-keys", {"name": "n", "scopes": [wanted]}, key=maker)
            if held == "admin" or wanted in (held, "keys:write"):
                assert reply.status == 201, (held, wanted)
            else:
                assert reply.status == 403, (held, wanted)
                assert "scope" in reply.headers["www-authenticate"]
                if wanted != "admin":
                    assert wanted in reply.json["detail"]
        mixed = service.post("/v1/api-keys", {"name": "n", "scopes": ["keys:write", "admin"]}, key=maker)
        assert mixed.status == (201 if held == "admin" else 403)


def test_what_made_a_key_can_be_sent_again(service: Service) -> None:
    """The answer that made a key is a body that makes another one: the key in it is ignored."""
    made = service.made("/v1/api-keys", {"name": "n", "scopes": ["users:read"]})
    again = service.made("/v1/api-keys", made)
    assert again["key"] != made["key"]
    assert again["name"] == "n"


def test_all_scopes_together_are_not_admin(service: Service) -> None:
    """A key that holds every scope by name cannot make an admin, which holds those to come as well."""
    maker = service.new_key(*[scope for scope in SCOPES if scope != "admin"])
    assert service.post("/v1/api-keys", {"name": "n", "scopes": ["admin"]}, key=maker).status == 403


def test_a_revoked_key_stays_readable_and_is_revoked_once(service: Service) -> None:
    """DELETE is 204, and 204 again; the key stays with the instant it was revoked at first."""
    made = service.made("/v1/api-keys", {"name": shop.unique(), "scopes": ["users:read"]})
    path = f"/v1/api-keys/{made['id']}"
    assert service.call("DELETE", path).status == 204
    first = shop.get(service, path)
    assert first["revokedAt"] is not None
    assert service.call("DELETE", path).status == 204
    assert shop.get(service, path) == first
    assert first in shop.walked(service, f"/v1/api-keys?prefix={made['prefix']}")
    assert service.call("DELETE", "/v1/api-keys/nothing").status == 404


def test_revocation_works_within_a_second_on_every_process(
    engine: str, new_database: Callable[[str], str], door_time: GivenTime
) -> None:
    """A key in use at two services is refused by both within a second of its DELETE at one."""
    url = new_database(engine)
    one, other = Service(url), Service(url)
    try:
        made = one.made("/v1/api-keys", {"name": "n", "scopes": ["users:read"]})
        for each in (one, other):
            assert each.get("/v1/users", key=made["key"]).status == 200
        assert one.call("DELETE", f"/v1/api-keys/{made['id']}").status == 204
        door_time.move(1)
        for each in (one, other, one):
            assert each.get("/v1/users", key=made["key"]).status == 401
    finally:
        other.stop()
        one.stop()


def test_a_key_expires_within_a_second(
    engine: str, new_service: Callable[..., Service], door_time: GivenTime
) -> None:
    """A key works until its expiresAt, and is refused within a second after it."""
    clock = GivenClock("2026-11-20T12:00:00Z")
    service = new_service(engine, clock=clock)
    body = {"name": "n", "scopes": ["users:read"], "expiresAt": "2026-11-20T12:00:10Z"}
    made, fresh = service.made("/v1/api-keys", body), service.made("/v1/api-keys", body)
    assert made["expiresAt"] == "2026-11-20T12:00:10.000Z"
    clock.move(10 * SECOND - 1)
    assert service.get("/v1/users", key=made["key"]).status == 200
    clock.move(2)
    door_time.move(1)
    assert service.get("/v1/users", key=made["key"]).status == 401
    assert service.get("/v1/users", key=fresh["key"]).status == 401
    assert service.get(f"/v1/api-keys/{made['id']}").json["revokedAt"] is None


def test_an_expiry_is_told_in_utc(service: Service) -> None:
    """An instant may come with any offset; it is told as all times are."""
    body = {"name": "n", "scopes": ["users:read"], "expiresAt": "2999-01-01T02:00:00+02:00"}
    assert service.made("/v1/api-keys", body)["expiresAt"] == "2999-01-01T00:00:00.000Z"


def test_a_key_says_when_it_was_last_used(
    engine: str, new_service: Callable[..., Service], door_time: GivenTime
) -> None:
    """lastUsedAt is null until the key is used, then when it was, to the minute."""
    clock = GivenClock("2026-11-20T12:00:00Z")
    service = new_service(engine, clock=clock)
    made = service.made("/v1/api-keys", {"name": "n", "scopes": ["users:read"]})
    path = f"/v1/api-keys/{made['id']}"
    assert shop.get(service, path)["lastUsedAt"] is None
    for at in ("2026-11-20T12:05:00.000Z", "2026-11-21T00:00:00.000Z"):
        clock.set(at)
        door_time.move(1)  # while the door remembers a key, its uses go unnoted
        assert service.get("/v1/users", key=made["key"]).status == 200
        noted = (shop.get(service, path)["lastUsedAt"] == at for _ in range(shop.MANY))  # behind the answer
        assert any(noted)


def test_keys_emit_no_events(service: Service) -> None:
    """What keys are made and revoked is no event of the catalogue."""
    made = service.made("/v1/api-keys", {"name": "n", "scopes": ["users:read"]})
    service.call("DELETE", f"/v1/api-keys/{made['id']}")
    assert shop.told(service, f"api-keys/{made['id']}") == []
    assert shop.told(service, f"api_keys/{made['id']}") == []


def test_a_key_that_expires_makes_none_that_outlives_it(service: Service) -> None:
    """A key's own end is the latest end of the keys it makes: 403 beyond it, or without one."""
    ends = "2099-01-01T00:00:00.000Z"
    key = service.new_key("admin", expires=ends)
    body = {"name": "made by one that ends", "scopes": ["orders:read"]}
    for later in (None, "2099-01-01T00:00:00.001Z"):
        assert service.post("/v1/api-keys", {**body, "expiresAt": later}, key=key).status == 403
    assert service.post("/v1/api-keys", {**body, "expiresAt": ends}, key=key).status == 201
