"""Access: what each scope opens, what a key that acts for a user meets, and who may look at the schema."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from graphql import get_introspection_query

from tests import shop
from tests.given_clock import GivenTime
from tests.graphql.asking import JSON, PATH, RESPONSE, address, ask, got
from tests.service import Service
from tradepost.domain.scope import SCOPES

READS = {
    "{ user(id: $user) { id } }": "users:read",
    "{ users { nodes { id } } }": "users:read",
    "{ user(id: $user) { addresses { nodes { id } } } }": "users:read",
    "{ order(id: $order) { id lineItems { id } shippingAddress { id } } }": "orders:read",
    "{ orders { nodes { id } } }": "orders:read",
    "{ product(id: $product) { id } }": "products:read",
    "{ products { id } }": "products:read",
}
WRITES = {
    "{ createUser(input: {name: $text, email: $email}) { id } }": "users:write",
    "{ updateUser(id: $user, input: {name: $text}) { id } }": "users:write",
    "{ deactivateUser(id: $user) { id } }": "users:write",
    "{ createProduct(input: {sku: $text, name: $text, price: 1, currency: $currency}) { id } }": "products:write",
    "{ updateProduct(id: $product, input: {name: $text}) { id } }": "products:write",
    "{ createOrder(input: {userId: $user, lineItems: [{productId: $product, quantity: 1}]}) { id total lineItems { id } } }": "orders:write",
    "{ fulfillOrder(id: $order) { id lineItems { id } } }": "orders:write",
    "{ cancelOrder(id: $order) { id } }": "orders:write",
}
TYPES = {
    "user": "ID!",
    "order": "ID!",
    "product": "ID!",
    "text": "String!",
    "email": "String!",
    "currency": "String!",
}


def spelled(selection: str, word: str) -> str:
    """An operation with the variables that it uses."""
    declared = ", ".join(f"${name}: {kind}" for name, kind in TYPES.items() if f"${name}" in selection)
    return f"{word} {f'({declared})' if declared else ''} {selection}"


@pytest.fixture(scope="module")
def things(service: Service) -> dict[str, str]:
    user, product = shop.a_user(service), shop.a_product(service)
    order = shop.an_order(service, (product, 1), user=user)
    return {"user": user["id"], "product": product["id"], "order": order["id"]}


def variables(service: Service, word: str) -> dict[str, str]:
    """Things of its own for what changes them."""
    user, product = shop.a_user(service), shop.a_product(service)
    order = shop.an_order(service, (product, 1), user=user)
    return {
        "user": user["id"],
        "product": product["id"],
        "order": order["id"],
        "text": shop.unique(),
        "email": f"{shop.unique()}@shop.example",
        "currency": "EUR",
    }


def only(given: dict[str, str], query: str) -> dict[str, str]:
    return {name: value for name, value in given.items() if f"${name}:" in query}


# --- scopes ---


@pytest.mark.parametrize(("selection", "scope"), READS.items())
def test_a_field_needs_its_scope_and_no_other(
    service: Service, things: dict[str, str], selection: str, scope: str
) -> None:
    """The scope alone opens the field; all others but it do not, and the error says which is lacking."""
    query = spelled(selection, "query")
    asked = only(things, query)
    assert ask(service, query, asked, key=service.new_key(scope)).sound
    refused = ask(service, query, asked, key=service.new_key(*(set(SCOPES) - {scope, "admin"})))
    assert refused.status == 200
    assert refused.codes == ["FORBIDDEN"]
    assert scope in refused.errors[0]["message"]
    assert len(refused.errors[0]["path"]) == 1


@pytest.mark.parametrize(("selection", "scope"), WRITES.items())
def test_a_mutation_needs_its_scope_and_no_other(service: Service, selection: str, scope: str) -> None:
    """The scope to write opens it, its answer too; without it nothing happens, whatever else the key may."""
    query = spelled(selection, "mutation")
    given = variables(service, "mutation")
    key = service.new_key(*(set(SCOPES) - {scope, "admin"}))
    refused = ask(service, query, only(given, query), key=key)
    assert refused.codes == ["FORBIDDEN"]
    assert refused.data is None
    assert scope in refused.errors[0]["message"]
    assert shop.get(service, f"/v1/orders/{given['order']}")["status"] == "PENDING"
    assert shop.get(service, f"/v1/users/{given['user']}")["name"] == "Ada"
    assert shop.stock_of(service, {"id": given["product"]}) == 99
    assert ask(service, query, only(given, query), key=service.new_key(scope)).sound


def test_what_may_be_seen_is_seen(service: Service, things: dict[str, str]) -> None:
    """A field that lacks its scope is null and has an error; the rest of the answer stands."""
    query = """query($order: ID!, $user: ID!, $product: ID!) {
      order(id: $order) { status user { name } lineItems { quantity product { name } } }
      user(id: $user) { id } product(id: $product) { id }
    }"""
    answered = ask(service, query, things, key=service.new_key("orders:read"))
    assert answered.status == 200
    assert answered.data == {
        "order": {"status": "PENDING", "user": None, "lineItems": [{"quantity": 1, "product": None}]},
        "user": None,
        "product": None,
    }
    assert sorted((error["path"], error["extensions"]["code"]) for error in answered.errors) == [
        (["order", "lineItems", 0, "product"], "FORBIDDEN"),
        (["order", "user"], "FORBIDDEN"),
        (["product"], "FORBIDDEN"),
        (["user"], "FORBIDDEN"),
    ]


def test_a_user_without_their_orders_is_not_told(service: Service, things: dict[str, str]) -> None:
    """Where the field cannot be null, what is around it is, and what is beside that stands."""
    query = "query($user: ID!, $product: ID!) { user(id: $user) { id orders { totalCount } } product(id: $product) { id } }"
    answered = ask(service, query, only(things, query), key=service.new_key("users:read", "products:read"))
    assert answered.data == {"user": None, "product": {"id": things["product"]}}
    assert answered.codes == ["FORBIDDEN"]
    assert answered.errors[0]["path"] == ["user", "orders"]


def test_nothing_is_read_for_who_may_not(service: Service, things: dict[str, str]) -> None:
    """Who lacks the scope cannot tell what is there from what is not, and costs no statement."""
    key = service.new_key("orders:read")
    query = "query($user: ID!) { user(id: $user) { id } }"
    there, nowhere = (
        ask(service, query, {"user": user_id}, key=key) for user_id in (things["user"], "nobody")
    )
    assert there.body == nowhere.body
    assert there.cost["statements"] == 0


def test_scopes_cover_nothing_by_being_many(service: Service) -> None:
    """Keys for webhooks, events, keys and introspection read nothing of the shop."""
    key = service.new_key("webhooks:read", "webhooks:write", "events:read", "keys:write", "introspection")
    for query in ("{ users { totalCount } }", "{ orders { totalCount } }", "{ products { id } }"):
        assert ask(service, query, key=key).codes == ["FORBIDDEN"]


# --- credentials ---


@pytest.mark.parametrize("accept", [JSON, RESPONSE])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_key_is_401(service: Service, method: str, accept: str) -> None:
    """Without a valid key: 401 with a challenge, UNAUTHENTICATED, in the media type that was asked for."""
    path = address("{ __typename }") if method == "GET" else PATH
    body = {"query": "{ __typename }"} if method == "POST" else None
    for authorization in (None, "Bearer tp_unknown1_" + "a" * 32, "Basic x", "Bearer"):
        given = {} if authorization is None else {"authorization": authorization}
        reply = service.call(method, path, body, key=None, accept=accept, **given)
        assert reply.status == 401
        assert reply.headers["content-type"].startswith(accept)
        assert reply.headers["www-authenticate"].startswith("Bearer")
        assert ("invalid_token" in reply.headers["www-authenticate"]) is (authorization is not None)
        assert [error["extensions"]["code"] for error in reply.json["errors"]] == ["UNAUTHENTICATED"]
        assert "data" not in reply.json


def test_credentials_come_before_anything_else(service: Service) -> None:
    """Whatever else is wrong with a request, who shows no key is told 401."""
    for method, body, headers in (
        ("POST", b"{", {}),
        ("POST", {"query": "{"}, {}),
        ("POST", b"x", {"content_type": "text/plain"}),
        ("POST", {"query": "{ __typename }"}, {"accept": "image/png"}),
        ("PUT", {"query": "{ __typename }"}, {}),
        ("DELETE", None, {}),
    ):
        assert service.call(method, PATH, body, key=None, **headers).status == 401, (method, body)


def test_a_key_in_the_address_is_no_credential(service: Service) -> None:
    """A key is taken from the Authorization header alone."""
    assert service.get(address("{ __typename }", access_token=service.key), key=None).status == 401


def test_a_key_that_ends_is_over_here_too(service: Service, door_time: GivenTime) -> None:
    """A revoked key is no key, within a second."""
    made = service.made("/v1/api-keys", {"name": "n", "scopes": ["users:read"]})
    assert ask(service, "{ users { totalCount } }", key=made["key"]).sound
    service.call("DELETE", f"/v1/api-keys/{made['id']}")
    door_time.move(1)
    assert service.post(PATH, {"query": "{ __typename }"}, key=made["key"]).status == 401


# --- keys that act for a user ---


@pytest.fixture(scope="module")
def two(service: Service) -> dict[str, Any]:
    """Two users, each with a key, an address and an order of the same product."""
    product = shop.a_product(service)
    found: dict[str, Any] = {"product": product}
    for name in ("mine", "theirs"):
        user = shop.a_user(service)
        found[name] = {
            "user": user,
            "key": service.new_key("admin", user=user["id"]),
            "address": shop.an_address(service, user),
            "order": shop.an_order(service, (product, 1), user=user),
        }
    return found


def test_a_users_key_sees_what_is_theirs(service: Service, two: dict[str, Any]) -> None:
    """Their record, addresses, orders and line items, on every path; products like everyone."""
    mine = two["mine"]
    query = """query($user: ID!, $order: ID!) {
      user(id: $user) { id addresses { totalCount nodes { id } } orders { totalCount nodes { id user { id orders { nodes { id } } } } } }
      order(id: $order) { id user { id addresses { nodes { id } } } lineItems { id product { id } } }
      users { totalCount nodes { id } edges { node { id } } } orders { totalCount nodes { id } }
    }"""
    asked = {"user": mine["user"]["id"], "order": mine["order"]["id"]}
    user, order = {"id": asked["user"]}, {"id": asked["order"]}
    place = {"id": mine["address"]["id"]}
    assert got(service, query, asked, key=mine["key"]) == {
        "user": {
            **user,
            "addresses": {"totalCount": 1, "nodes": [place]},
            "orders": {"totalCount": 1, "nodes": [order | {"user": user | {"orders": {"nodes": [order]}}}]},
        },
        "order": order
        | {
            "user": user | {"addresses": {"nodes": [place]}},
            "lineItems": [
                {"id": mine["order"]["lineItems"][0]["id"], "product": {"id": two["product"]["id"]}}
            ],
        },
        "users": {"totalCount": 1, "nodes": [user], "edges": [{"node": user}]},
        "orders": {"totalCount": 1, "nodes": [order]},
    }
    assert got(service, f'{{ product(id: "{two["product"]["id"]}") {{ name }} }}', key=mine["key"])["product"]


def test_a_users_key_sees_nothing_of_others(service: Service, two: dict[str, Any]) -> None:
    """Another's user and order are null, as if there were none; lists continue past them, not into them."""
    mine, theirs = two["mine"], two["theirs"]
    query = """query($user: ID!, $order: ID!, $before: String) {
      user(id: $user) { id } order(id: $order) { id }
      users(after: $before) { totalCount nodes { id } } orders(after: $before) { totalCount nodes { id } }
    }"""
    asked = {"user": theirs["user"]["id"], "order": theirs["order"]["id"], "before": theirs["user"]["id"]}
    seen = got(service, query, asked, key=mine["key"])
    assert (seen["user"], seen["order"]) == (None, None)
    assert seen["users"]["totalCount"] == seen["orders"]["totalCount"] == 1
    assert seen["users"]["nodes"] == seen["orders"]["nodes"] == []  # theirs are younger


def test_own_and_others_in_one_request(service: Service, two: dict[str, Any]) -> None:
    """Aliases that are loaded together are judged each by itself."""
    query = "query($mine: ID!, $theirs: ID!) { a: order(id: $mine) { id } b: order(id: $theirs) { id } c: order(id: $mine) { id } }"
    mine, theirs = two["mine"]["order"]["id"], two["theirs"]["order"]["id"]
    assert got(service, query, {"mine": mine, "theirs": theirs}, key=two["mine"]["key"]) == {
        "a": {"id": mine},
        "b": None,
        "c": {"id": mine},
    }


@pytest.mark.parametrize(
    ("query", "thing"),
    [
        ('mutation($id: ID!) { updateUser(id: $id, input: {name: "Mallory"}) { id } }', "user"),
        ("mutation($id: ID!) { deactivateUser(id: $id) { id } }", "user"),
        ("mutation($id: ID!) { fulfillOrder(id: $id) { id } }", "order"),
        ("mutation($id: ID!) { cancelOrder(id: $id) { id } }", "order"),
        ('mutation($id: ID!) { cancelOrder(id: $id, ifMatch: "*") { id } }', "order"),
    ],
)
def test_a_users_key_changes_nothing_of_others(
    service: Service, two: dict[str, Any], query: str, thing: str
) -> None:
    """Another's user and order are NOT_FOUND, in the words used for what is not there."""
    path = f"/v1/{thing}s/{two['theirs'][thing]['id']}"
    before = shop.get(service, path)
    refused = ask(service, query, {"id": before["id"]}, key=two["mine"]["key"])
    assert refused.codes == ["NOT_FOUND"]
    nowhere = ask(service, query, {"id": before["id"][:-4] + "0000"}, key=two["mine"]["key"])
    assert refused.errors[0]["message"].replace(before["id"], "") == nowhere.errors[0]["message"].replace(
        before["id"][:-4] + "0000", ""
    )
    assert shop.get(service, path) == before


def test_a_users_key_changes_what_is_theirs(service: Service) -> None:
    """They rename themselves, order and cancel; for another they order nothing."""
    user, other, product = shop.a_user(service), shop.a_user(service), shop.a_product(service, stock=9)
    key = service.new_key("admin", user=user["id"])
    rename = 'mutation($id: ID!) { updateUser(id: $id, input: {name: "Grace"}) { name } }'
    assert got(service, rename, {"id": user["id"]}, key=key)["updateUser"]["name"] == "Grace"
    place = "mutation($input: CreateOrderInput!) { createOrder(input: $input) { id user { id } } }"
    made = got(service, place, {"input": shop.order_body(user, (product, 1))}, key=key)["createOrder"]
    assert made["user"] == {"id": user["id"]}
    refused = ask(service, place, {"input": shop.order_body(other, (product, 1))}, key=key)
    assert (refused.codes, refused.fields) == (["BAD_USER_INPUT"], ["userId"])
    cancel = "mutation($id: ID!) { cancelOrder(id: $id) { status } }"
    assert got(service, cancel, {"id": made["id"]}, key=key)["cancelOrder"]["status"] == "CANCELLED"
    assert shop.stock_of(service, product) == 9


@pytest.mark.parametrize(
    "query",
    [
        'mutation { createUser(input: {name: "n", email: "n@shop.example"}) { id } }',
        'mutation { createProduct(input: {sku: "s", name: "n", price: 1, currency: "EUR"}) { id } }',
        'mutation { updateProduct(id: "x", input: {name: "n"}) { id } }',
    ],
)
def test_a_users_key_makes_no_users_and_products(service: Service, two: dict[str, Any], query: str) -> None:
    """What is no user's own is FORBIDDEN to a key that acts for one, whatever its scopes."""
    assert ask(service, query, key=two["mine"]["key"]).codes == ["FORBIDDEN"]


def test_a_users_key_still_needs_its_scopes(service: Service, two: dict[str, Any]) -> None:
    """Acting for a user adds nothing to what the key may."""
    key = service.new_key("users:read", user=two["mine"]["user"]["id"])
    assert ask(service, "{ orders { totalCount } }", key=key).codes == ["FORBIDDEN"]
    assert ask(service, "{ products { id } }", key=key).codes == ["FORBIDDEN"]


# --- subscriptions' source ---


class Socket:
    """A socket to the application itself, acknowledged."""

    def __init__(self, service: Service, key: str) -> None:
        self._told: asyncio.Queue[Any] = asyncio.Queue()
        self._said: asyncio.Queue[Any] = asyncio.Queue()
        self._said.put_nowait({"type": "websocket.connect"})
        scope = {
            "type": "websocket",
            "scheme": "ws",
            "path": PATH,
            "raw_path": PATH.encode(),
            "query_string": b"",
            "headers": [(b"host", b"shop.example"), (b"authorization", f"Bearer {key}".encode())],
            "subprotocols": ["graphql-transport-ws"],
            "client": ("192.0.2.1", 40000),
        }
        self._serving = asyncio.create_task(service.app(scope, self._said.get, self._told.put))

    async def open(self) -> None:
        assert (await asyncio.wait_for(self._told.get(), 20))["type"] == "websocket.accept"
        self._say(type="connection_init")
        assert (await self.hear())["type"] == "connection_ack"

    def watch(self, order_id: str) -> None:
        query = "subscription($id: ID!) { orderStatusChanged(orderId: $id) { id status user { id } } }"
        payload = {"query": query, "variables": {"id": order_id}}
        self._say(type="subscribe", id=order_id, payload=payload)

    async def refused(self, order_id: str) -> list[str]:
        """The codes that a subscription is refused with; those before it have then begun."""
        self.watch(order_id)
        message = await self.hear()
        assert (message["type"], message["id"]) == ("error", order_id)
        return [error["extensions"]["code"] for error in message["payload"]]

    async def hear(self) -> Any:
        return json.loads((await asyncio.wait_for(self._told.get(), 20))["text"])

    async def close(self) -> None:
        self._said.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await asyncio.wait_for(self._serving, 20)

    def _say(self, **message: Any) -> None:
        self._said.put_nowait({"type": "websocket.receive", "text": json.dumps(message)})


def test_a_subscription_is_of_ones_own_orders(service: Service, two: dict[str, Any]) -> None:
    """A user's key is pushed its own order; of another's, of none and without the scope it is refused at once."""
    mine = two["mine"]
    order = shop.an_order(service, (two["product"], 1), user=mine["user"])

    async def work() -> None:
        lacking = Socket(service, service_key)
        await lacking.open()
        assert await lacking.refused(order["id"]) == ["FORBIDDEN"]
        await lacking.close()
        socket = Socket(service, mine["key"])
        await socket.open()
        socket.watch(order["id"])
        for order_id in (two["theirs"]["order"]["id"], "nope"):
            assert await socket.refused(order_id) == ["NOT_FOUND"]
        await service._call("PATCH", f"/v1/orders/{order['id']}", {"status": "FULFILLED"}, "", {})
        pushed = (await socket.hear())["payload"]["data"]["orderStatusChanged"]
        assert pushed == {"id": order["id"], "status": "FULFILLED", "user": {"id": mine["user"]["id"]}}
        await socket.close()

    service_key = service.new_key("users:read")
    service.run(work())


# --- introspection ---


@pytest.fixture(scope="module")
def production(engine: str, new_service: Callable[..., Service]) -> Service:
    return new_service(engine, env="production")


LOOKS = [
    "{ __schema { queryType { name } } }",
    '{ __type(name: "User") { name } }',
    "{ users { totalCount } s: __schema { types { name } } }",
    "query { ...F } fragment F on Query { ... on Query { __schema { types { name } } } }",
    "query($no: Boolean = false) { __schema @include(if: $no) { types { name } } users { totalCount } }",
    get_introspection_query(),
]


@pytest.mark.parametrize("query", LOOKS)
def test_production_shows_its_schema_to_those_who_may(production: Service, query: str) -> None:
    """`__schema` and `__type`, however they are spelled, are FORBIDDEN without the scope introspection."""
    for method in ("POST", "GET"):
        for accept in (JSON, RESPONSE):
            path, body = (PATH, {"query": query}) if method == "POST" else (address(query), None)
            key = production.new_key(*(set(SCOPES) - {"introspection", "admin"}))
            reply = production.call(method, path, body, key=key, accept=accept)
            assert [error["extensions"]["code"] for error in reply.json["errors"]] == ["FORBIDDEN"]
            assert "data" not in reply.json
            assert "introspection" in reply.json["errors"][0]["message"]
    assert not ask(production, query, key=production.new_key("introspection", "users:read")).errors
    assert not ask(production, query, key=production.new_key("admin")).errors


def test_production_tells_type_names_of_what_is_asked(production: Service) -> None:
    """`__typename` is no introspection."""
    key = production.new_key("users:read")
    assert got(production, "{ __typename users { __typename } }", key=key) == {
        "__typename": "Query",
        "users": {"__typename": "UserConnection"},
    }


def test_production_gives_no_hints(production: Service) -> None:
    """No error says what else there is, neither of fields nor of arguments, types, enumerations or inputs."""
    for query, given in (
        ("{ user(id: 1) { emial } }", None),
        ("{ usres { totalCount } }", None),
        ("{ users(frist: 1) { totalCount } }", None),
        ('{ products(filter: {serach: "x"}) { id } }', None),
        ("{ products(filter: {status: ACTIV}) { id } }", None),
        ("query($f: ProductFilte) { products(filter: $f) { id } }", {}),
        ("query($f: ProductFilter) { products(filter: $f) { id } }", {"f": {"serach": "x"}}),
        ("query($f: ProductFilter) { products(filter: $f) { id } }", {"f": {"status": "ACTIV"}}),
        ("query($f: UserStatus!) { products(filter: {status: $f}) { id } }", {"f": "ACTIV"}),
        ("{ ...Usr } fragment Usr on Usr { id }", None),
        ("mutation { updateUsr(id: 1) { id } }", None),
        ("{ __typename @skp(if: true) }", None),
    ):
        answered = ask(production, query, given)
        assert answered.errors
        assert "did you mean" not in answered.reply.body.decode().lower()


def test_elsewhere_errors_give_hints(service: Service) -> None:
    """In development a misspelled field is answered with the one that was meant."""
    assert "email" in ask(service, "{ user(id: 1) { emial } }").errors[0]["message"]


def test_production_keeps_its_schema_document(production: Service, service: Service) -> None:
    """/graphql/schema needs the same scope there: 401 without a key, 403 without the scope; elsewhere it is open."""
    path = f"{PATH}/schema"
    assert production.get(path, key=None).status == 401
    refused = production.get(path, key=production.new_key("users:read"))
    assert refused.status == 403
    assert "introspection" in refused.json["detail"]
    shown = production.get(path, key=production.new_key("introspection"))
    assert (shown.status, shown.body) == (200, service.get(path, key=None).body)


def test_production_has_no_page(production: Service, service: Service) -> None:
    """A browser that opens /graphql in production finds no page there, nor what it is made of."""
    html = "text/html,application/xhtml+xml,*/*;q=0.8"
    assert service.get(PATH, key=None, accept=html).headers["content-type"].startswith("text/html")
    reply = production.get(PATH, key=None, accept=html)
    assert reply.status == 401
    assert "html" not in reply.headers["content-type"]
