"""GraphQL over HTTP (https://graphql.github.io/graphql-over-http/draft/): media types, statuses, methods, costs."""

import asyncio
import hashlib
import itertools
import json
import logging
import math
import re
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from sqlalchemy import text

from tests import shop
from tests.graphql.asking import JSON, PATH, RESPONSE, Answered, address, ask, got, together
from tests.service import Reply, Service
from tradepost.graphql import errors
from tradepost.graphql.surface import GraphQL
from tradepost.storage import sqlite
from tradepost.storage.database import Writing
from tradepost.storage.statement import Statement

NOWHERE = "01900000-0000-7000-8000-000000000000"
ACCEPTS = pytest.mark.parametrize("accept", [JSON, RESPONSE])


def codes(reply: Reply) -> list[str]:
    return [error["extensions"]["code"] for error in reply.json["errors"]]


def get(service: Service, query: str, variables: Any = None, **headers: Any) -> Reply:
    return service.get(address(query, variables), **headers)


# --- media types and statuses ---

# What is asked, its code, and its status as a GraphQL response and as JSON.
FAILURES: dict[str, tuple[dict[str, Any], str, int, int]] = {
    "syntax": ({"query": "{"}, "GRAPHQL_PARSE_FAILED", 400, 200),
    "empty": ({"query": ""}, "GRAPHQL_PARSE_FAILED", 400, 200),
    "validation": ({"query": "{ nothing }"}, "GRAPHQL_VALIDATION_FAILED", 400, 200),
    "variables": (
        {"query": "query($n: Int!) { users(first: $n) { totalCount } }"},
        "BAD_USER_INPUT",
        400,
        200,
    ),
    "operation": ({"query": "{ __typename }", "operationName": "X"}, "BAD_USER_INPUT", 400, 200),
    "operations": ({"query": "query A { __typename } query B { __typename }"}, "BAD_USER_INPUT", 400, 200),
    "subscription": (
        {"query": f'subscription {{ orderStatusChanged(orderId: "{NOWHERE}") {{ id }} }}'},
        "BAD_USER_INPUT",
        400,
        200,
    ),
    "depth": (
        {"query": "{" + "users{nodes{orders{nodes{user{" * 3 + "id" + "}" * 16},
        "QUERY_TOO_DEEP",
        400,
        200,
    ),
    "execution": ({"query": "{ users(first: -1) { totalCount } }"}, "BAD_USER_INPUT", 200, 200),
    "no query": ({}, "BAD_USER_INPUT", 400, 400),
    "query's type": ({"query": 1}, "BAD_USER_INPUT", 400, 400),
    "variables' type": ({"query": "{ __typename }", "variables": []}, "BAD_USER_INPUT", 400, 400),
    "extensions' type": ({"query": "{ __typename }", "extensions": "x"}, "BAD_USER_INPUT", 400, 400),
    "name's type": ({"query": "{ __typename }", "operationName": 1}, "BAD_USER_INPUT", 400, 400),
}


@ACCEPTS
@pytest.mark.parametrize(("body", "code", "status", "as_json"), FAILURES.values(), ids=FAILURES)
def test_a_failure_has_its_status(
    service: Service, accept: str, body: dict[str, Any], code: str, status: int, as_json: int
) -> None:
    """As a GraphQL response the status says whether it was executed; as JSON, whether it could be read."""
    reply = service.post(PATH, body, accept=accept)
    assert reply.status == (status if accept == RESPONSE else as_json)
    assert codes(reply) == [code]
    assert reply.headers["content-type"] == f"{accept}; charset=utf-8"
    assert ("data" in reply.json) is (status == 200)
    assert "no-store" in reply.headers["cache-control"]
    for error in reply.json["errors"]:
        assert error.keys() <= {"message", "locations", "path", "extensions"}
        assert error["extensions"]["category"] in ("business", "system")


@ACCEPTS
def test_a_success_is_200(service: Service, accept: str) -> None:
    """Executed is 200, with data and what it cost, and no `errors` at all."""
    reply = service.post(PATH, {"query": "{ __typename }"}, accept=accept)
    assert (reply.status, reply.headers["content-type"]) == (200, f"{accept}; charset=utf-8")
    assert reply.json == {
        "data": {"__typename": "Query"},
        "extensions": {"cost": {"complexity": 1, "depth": 1, "statements": 0}},
    }


@ACCEPTS
def test_partial_success_is_200(service: Service, accept: str) -> None:
    """Data beside errors is 200 in both."""
    body = {"query": "{ __typename orders { totalCount } user(id: 1) { id } }"}
    reply = service.post(PATH, body, accept=accept, key=service.new_key("orders:read"))
    assert reply.status == 200
    assert reply.json["data"]["user"] is None
    assert codes(reply) == ["FORBIDDEN"]


@pytest.mark.parametrize(
    ("accept", "answered"),
    [
        (None, JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        (JSON, JSON),
        ("Application/JSON; charset=utf-8", JSON),
        (RESPONSE, RESPONSE),
        (f"{RESPONSE}; charset=utf-8, {JSON}; charset=utf-8;q=0.9", RESPONSE),
        (f"{RESPONSE}, {JSON};q=0.9", RESPONSE),
        (f"{JSON};q=0.5, {RESPONSE};q=0.9, */*;q=0.1", RESPONSE),
        (f"{RESPONSE};q=0.2, {JSON}", JSON),
        (f"{JSON};q=0, */*", RESPONSE),
        (f"text/html, {RESPONSE};q=0.1", RESPONSE),
        ("text/html, */*;q=0.1", JSON),
        ("multipart/mixed, application/json", JSON),
    ],
)
def test_the_media_type_is_negotiated(service: Service, accept: str | None, answered: str) -> None:
    """The client's order of preference decides; without one it is JSON."""
    given = {} if accept is None else {"accept": accept}
    for query in ("{ __typename }", "{"):
        reply = service.post(PATH, {"query": query}, **given)
        assert reply.headers["content-type"] == f"{answered}; charset=utf-8"
    assert reply.status == (400 if answered == RESPONSE else 200)


@pytest.mark.parametrize(
    "accept", ["text/plain", "image/*", f"{JSON};q=0", f"{JSON};q=0, {RESPONSE};q=0, */*", "x"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_cannot_be_accepted_is_406(service: Service, method: str, accept: str) -> None:
    """Who takes neither media type is told so, and nothing runs."""
    user = shop.a_user(service)
    query = f'mutation {{ updateUser(id: "{user["id"]}", input: {{name: "Never"}}) {{ id }} }}'
    body = {"query": query} if method == "POST" else None
    reply = service.call(method, PATH if body else address("{ __typename }"), body, accept=accept)
    assert (reply.status, codes(reply)) == (406, ["BAD_USER_INPUT"])
    assert shop.get(service, f"/v1/users/{user['id']}") == user


@pytest.mark.parametrize(
    "given",
    [
        "application/json",
        "application/json; charset=utf-8",
        'application/json; charset="UTF-8"',
        "APPLICATION/JSON;charset=utf8",
        "application/json; odata=verbose",
    ],
)
def test_a_body_is_json_in_utf_8(service: Service, given: str) -> None:
    """However that is spelled."""
    user = shop.a_user(service, name="Зоя")
    body = json.dumps(
        {"query": f'{{ user(id: "{user["id"]}") {{ name }} }} # é'}, ensure_ascii=False
    ).encode()
    reply = service.post(PATH, body, content_type=given)
    assert reply.json["data"] == {"user": {"name": "Зоя"}}
    assert "Зоя".encode() in reply.body


@ACCEPTS
@pytest.mark.parametrize(
    "given",
    [
        "",
        "text/plain",
        "application/graphql",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=iso-8859-1",
        "application/json; charset=utf-16",
        "application/jsonp",
    ],
)
def test_a_body_of_another_type_is_415(service: Service, given: str, accept: str) -> None:
    """What a page of another site could send without asking, and what is not UTF-8, is not taken."""
    reply = service.post(PATH, {"query": "{ __typename }"}, content_type=given, accept=accept)
    assert (reply.status, codes(reply)) == (415, ["BAD_USER_INPUT"])
    assert reply.headers["accept"] == JSON


@ACCEPTS
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"1",
        b"{}{}",
        b'{"query": }',
        b"\xff",
        b'{"query":"\\ud800"}',
        b"[" * 5000,
    ],
)
def test_a_body_that_is_no_request_is_400(service: Service, body: bytes, accept: str) -> None:
    """What is not a JSON object is 400 in both media types, a batch too."""
    reply = service.post(PATH, body, accept=accept)
    assert (reply.status, codes(reply)) == (400, ["BAD_USER_INPUT"])


def test_every_bad_member_of_a_request_is_named(service: Service) -> None:
    """One answer names all."""
    answered = Answered(
        service.post(PATH, {"query": 1, "variables": [], "operationName": {}, "extensions": ""})
    )
    assert sorted(answered.fields) == ["extensions", "operationName", "query", "variables"]


def test_what_is_null_or_unknown_is_ignored(service: Service) -> None:
    """Null members are as good as none, and members that the standard does not know do no harm."""
    body = {"query": "{ __typename }", "variables": None, "operationName": None, "extensions": None, "id": 7}
    assert service.post(PATH, body).json["data"] == {"__typename": "Query"}
    named = {
        "query": "query A { __typename } query B { a: __typename }",
        "operationName": "B",
        "variables": {"x": 1},
    }
    assert service.post(PATH, named).json["data"] == {"a": "Query"}


def test_a_body_beyond_the_limit_is_413(service: Service) -> None:
    """More than 1 MiB is not read."""
    reply = service.post(PATH, {"query": "{ __typename }", "variables": {"x": "x" * (1 << 20)}})
    assert (reply.status, codes(reply)) == (413, ["DOCUMENT_TOO_LARGE"])


# --- methods ---


@ACCEPTS
def test_a_query_may_be_asked_by_get(service: Service, accept: str) -> None:
    """`query`, `variables`, `operationName` and `extensions` as parameters answer what a POST does."""
    user = shop.a_user(service, name="Zoë & + %")
    query = "query A($id: ID!) { user(id: $id) { name } } query B { __typename }"
    given = {
        "query": query,
        "operationName": "A",
        "variables": json.dumps({"id": user["id"]}),
        "extensions": "{}",
    }
    for unknown in ({}, {"nothing": "1"}):
        reply = service.get(f"{PATH}?{urlencode(given | unknown)}", accept=accept)
        assert (reply.status, reply.headers["content-type"]) == (200, f"{accept}; charset=utf-8")
        assert reply.json["data"] == {"user": {"name": "Zoë & + %"}}


@pytest.mark.parametrize(
    "parameters",
    [
        "",
        "query=",
        "variables={}",
        "query={__typename}&variables=x",
        "query={__typename}&variables=[]",
        "query={__typename}&extensions=1",
        "query={__typename}&query={__typename}",
        "query=%ff",
        "query=%00",
    ],
)
def test_parameters_that_are_no_request_are_refused(service: Service, parameters: str) -> None:
    """No query, variables that are no object, a doubled parameter: none of them runs."""
    reply = service.get(f"{PATH}?{parameters}", accept=RESPONSE)
    assert reply.status == 400
    assert codes(reply)[0] in ("BAD_USER_INPUT", "GRAPHQL_PARSE_FAILED")


@ACCEPTS
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_only_queries_are_safe(service: Service, accept: str, method: str) -> None:
    """A mutation or subscription by GET is 405, says that it takes POST, and does nothing."""
    order = shop.an_order(service)
    for query in (
        f'mutation {{ cancelOrder(id: "{order["id"]}") {{ id }} }}',
        f'subscription {{ orderStatusChanged(orderId: "{order["id"]}") {{ id }} }}',
    ):
        reply = service.call(method, address(query), accept=accept)
        assert (reply.status, reply.headers["allow"]) == (405, "POST")
    named = {"query": f"query A {{ __typename }} {query}".replace("subscription", "subscription B")}
    assert service.call(method, f"{PATH}?{urlencode({**named, 'operationName': 'A'})}").status == 200
    assert service.call(method, f"{PATH}?{urlencode({**named, 'operationName': 'B'})}").status == 405
    assert shop.get(service, f"/v1/orders/{order['id']}")["status"] == "PENDING"


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "NONSENSE"])
@pytest.mark.parametrize("accept", [JSON, "*/*"])
def test_other_methods_are_405(service: Service, method: str, accept: str) -> None:
    """And the answer says which there are."""
    reply = service.call(method, PATH, {"query": "{ __typename }"}, accept=accept)
    assert reply.status == 405
    assert (
        reply.headers["allow"] == service.call("OPTIONS", PATH).headers["allow"] == "GET, HEAD, POST, OPTIONS"
    )


def test_options_needs_no_key(service: Service) -> None:
    """OPTIONS is answered without a body, to anyone."""
    reply = service.call("OPTIONS", PATH, key=None)
    assert (reply.status, reply.body) == (204, b"")


def test_head_is_get_without_its_body(service: Service) -> None:
    """The fields are those of GET, its length and ETag among them."""
    varying = ("x-request-id", "server-timing", "ratelimit")
    for query in ("{ __typename }", "{"):
        shown, head = (service.call(method, address(query)) for method in ("GET", "HEAD"))
        assert (head.status, head.body) == (shown.status, b"")
        assert {name: value for name, value in head.headers.items() if name not in varying} == {
            name: value for name, value in shown.headers.items() if name not in varying
        }


# --- what may be kept ---


@ACCEPTS
def test_what_did_not_change_is_304(service: Service, accept: str) -> None:
    """A GET has an ETag of what it says; who has that is sent nothing, until it says something else."""
    user = shop.a_user(service)
    query = "query($id: ID!) { user(id: $id) { name } }"
    first = get(service, query, {"id": user["id"]}, accept=accept)
    assert first.headers["cache-control"] == "private, no-cache"
    assert {"accept", "authorization"} <= {name.strip().lower() for name in first.headers["vary"].split(",")}
    tag = first.headers["etag"]
    for given in (tag, f'"x", {tag}', f"W/{tag}", "*", f'{tag[:-1]}-gzip"'):
        again = get(service, query, {"id": user["id"]}, accept=accept, if_none_match=given)
        assert (again.status, again.body) == (304, b"")
        assert again.headers["etag"] == tag
        assert again.headers["vary"] == first.headers["vary"]
        assert "content-type" not in again.headers
    service.call("PATCH", f"/v1/users/{user['id']}", {"name": "Anew"})
    changed = get(service, query, {"id": user["id"]}, accept=accept, if_none_match=tag)
    assert changed.status == 200
    assert changed.headers["etag"] != tag


def test_only_a_sound_get_may_be_kept(service: Service) -> None:
    """What has errors, and what came by POST, has no ETag and is not stored."""
    key = service.new_key("orders:read")
    for reply in (
        get(service, "{ user(id: 1) { id } }", key=key),
        get(service, "{ users(first: -1) { totalCount } }"),
        service.post(PATH, {"query": "{ __typename }"}),
        service.post(PATH, {"query": "{ __typename }"}, if_none_match="*"),
    ):
        assert reply.status == 200
        assert "etag" not in reply.headers
        assert reply.headers["cache-control"] == "no-store"


# --- what it costs ---

DAILY = 1000  # requests a day: a test is over before one comes back


@pytest.fixture
def metered(engine: str, new_service: Callable[..., Service]) -> Callable[[], tuple[Service, str]]:
    service = new_service(engine, rate_limit=f"{DAILY}/24 hours")
    return lambda: (service, service.new_key("admin"))


def left(reply: Reply) -> int:
    """What `RateLimit` says is left."""
    found = re.fullmatch(r'"default";r=(\d+);t=\d+', reply.headers["ratelimit"])
    assert found
    return int(found[1])


def test_an_operation_costs_by_its_complexity(metered: Callable[[], tuple[Service, str]]) -> None:
    """1 and a hundredth of its points, for queries and mutations, by POST and GET."""
    service, _ = metered()
    body = "{ users(first: 100) { nodes { id name email } edges { node { id } } } }"
    mutation = (
        'mutation { updateUser(id: "x", input: {}) { orders(first: 100) { nodes { id status total } } } }'
    )
    for query, method in ((body, "POST"), (body, "GET"), (mutation, "POST"), ("{ __typename }", "GET")):
        key = service.new_key("admin")
        spent = 0.0
        for _ in range(3):
            path, given = (PATH, {"query": query}) if method == "POST" else (address(query), None)
            reply = service.call(method, path, given, key=key)
            spent += 1 + reply.json["extensions"]["cost"]["complexity"] / 100
            assert left(reply) == pytest.approx(math.floor(DAILY - spent), abs=1)
        assert reply.headers["ratelimit-policy"] == f'"default";q={DAILY};w=86400'


def test_whatever_is_refused_costs_a_request(metered: Callable[[], tuple[Service, str]]) -> None:
    """What cannot be read, parsed, or run is not free."""
    service, key = metered()
    tries: list[Callable[[], Reply]] = [
        lambda: service.post(PATH, b"{", key=key),
        lambda: service.post(PATH, {"query": 1}, key=key),
        lambda: service.post(PATH, {"query": "{"}, key=key),
        lambda: service.post(PATH, {"query": "{ nothing }"}, key=key),
        lambda: service.post(PATH, {"query": "{ __typename }"}, key=key, content_type="text/plain"),
        lambda: service.post(PATH, {"query": "{ __typename }"}, key=key, accept="text/plain"),
        lambda: service.get(PATH, key=key),
        lambda: service.call("PUT", PATH, key=key),
    ]
    for count, one in enumerate(tries, 1):
        assert left(one()) == DAILY - count


def test_a_304_is_free(engine: str, new_service: Callable[..., Service]) -> None:
    """However often what did not change is asked for, nothing is drawn for it."""
    service = new_service(engine, rate_limit="8/hour")
    key, query = service.new_key("admin"), "{ users(first: 100) { totalCount } }"
    tag = get(service, query, key=key).headers["etag"]
    for _ in range(30):
        again = get(service, query, key=key, if_none_match=tag)
        assert again.status == 304
    assert 5 <= left(again) <= 6  # 8 - 2.01
    assert get(service, query, key=key).status == 200


@ACCEPTS
def test_beyond_the_rate_is_429(engine: str, new_service: Callable[..., Service], accept: str) -> None:
    """RATE_LIMITED with Retry-After, in either media type; nothing runs, and others are not concerned."""
    service = new_service(engine, rate_limit="5/hour")
    key = service.new_key("admin")
    order = shop.an_order(service)
    query = "mutation($id: ID!) { cancelOrder(id: $id) { id } }"
    body = {"query": query, "variables": {"id": order["id"]}}
    for _ in range(4):
        assert service.post(PATH, {"query": "{ __typename }"}, key=key, accept=accept).status == 200
    for _ in range(3):
        reply = service.post(PATH, body, key=key, accept=accept)
        assert reply.status == 429
        assert codes(reply) == ["RATE_LIMITED"]
        assert reply.headers["content-type"].startswith(accept)
        assert 0 < int(reply.headers["retry-after"]) <= 3600
        assert "data" not in reply.json
    assert service.get(f"/v1/orders/{order['id']}", key=service.new_key("admin")).json["status"] == "PENDING"


# --- what goes wrong ---

INSIDE = re.compile(
    r"traceback|\.py|apsw|asyncpg|sqlite|postgres|no such|does not exist|relation|select |secret|Error\b",
    re.IGNORECASE,
)


@pytest.fixture
def broken(engine: str, new_service: Callable[..., Service]) -> Service:
    """A service whose table of products is gone."""
    service = new_service(engine)
    service.run(service._execute(text("ALTER TABLE products RENAME TO gone")))
    return service


@ACCEPTS
def test_of_a_failure_nothing_is_told(broken: Service, caplog: pytest.LogCaptureFixture, accept: str) -> None:
    """INTERNAL, the request's id and no word of the inside; the log has all of it, under that id."""
    user = shop.a_user(broken)
    query = "query($user: ID!, $id: ID!) { user(id: $user) { name } product(id: $id) { name } other: product(id: $id) { id } }"
    for number in range(3):
        caplog.clear()
        answered = ask(
            broken, query, {"user": user["id"], "id": NOWHERE}, accept=accept, x_request_id=f"r-{number}"
        )
        assert answered.status == 200
        assert answered.headers["x-request-id"] == f"r-{number}"
        assert answered.data == {"user": {"name": "Ada"}, "product": None, "other": None}
        assert answered.codes == ["INTERNAL", "INTERNAL"]
        for error in answered.errors:
            assert error["extensions"] == {
                "code": "INTERNAL",
                "category": "system",
                "requestId": f"r-{number}",
            }
        assert not INSIDE.search(answered.reply.body.decode())
        records = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert records
        assert {vars(record)["request_id"] for record in records} == {f"r-{number}"}
        assert all(record.exc_info for record in records)


def test_of_a_failed_change_nothing_is_told_or_kept(
    broken: Service, caplog: pytest.LogCaptureFixture
) -> None:
    """The same for mutations; under a key the failure is not kept."""
    user = shop.a_user(broken)
    query = "mutation($input: CreateOrderInput!) { createOrder(input: $input) { id } }"
    variables = {"input": {"userId": user["id"], "lineItems": [{"productId": NOWHERE, "quantity": 1}]}}
    for given in ({}, {"idempotency_key": "k"}, {"idempotency_key": "k"}):
        answered = ask(broken, query, variables, **given)
        assert answered.codes == ["INTERNAL"]
        assert answered.data is None
        assert not INSIDE.search(answered.reply.body.decode())
    broken.run(broken._execute(text("ALTER TABLE gone RENAME TO products")))
    assert ask(broken, query, variables, idempotency_key="k").codes == ["BAD_USER_INPUT"]


@ACCEPTS
def test_a_failure_of_the_executor_is_told_alike(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, accept: str
) -> None:
    """If not a field but the whole fails unexpectedly: 500, as a GraphQL answer, and logged under its id."""

    async def fail(*_: Any) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(GraphQL, "run", fail)
    reply = service.post(PATH, {"query": "{ __typename }"}, accept=accept, x_request_id="r-1")
    assert (reply.status, codes(reply)) == (500, ["INTERNAL"])
    assert reply.headers["content-type"] == f"{accept}; charset=utf-8"
    assert reply.json["errors"][0]["extensions"]["requestId"] == "r-1"
    assert not INSIDE.search(reply.body.decode())
    assert any(vars(record).get("request_id") == "r-1" and record.exc_info for record in caplog.records)


def test_every_answer_has_a_request_id(service: Service) -> None:
    """Sound or not, and the client's own if it sent one."""
    for body in ({"query": "{ __typename }"}, {"query": "{"}, b"{"):
        assert service.post(PATH, body).headers["x-request-id"]
        assert service.post(PATH, body, x_request_id="mine").headers["x-request-id"] == "mine"


def test_a_request_is_one_line_in_the_log(service: Service) -> None:
    """With its route, status and what the database took."""
    request_id = shop.unique()
    answered = ask(service, "{ users { totalCount } }", x_request_id=request_id)

    async def flush() -> None:
        service.app.log.flush()

    service.run(flush())
    (line,) = [line for line in b"".join(service.lines).decode().splitlines() if request_id in line]
    assert " POST /graphql 200 " in line
    assert f"/{answered.cost['statements']} {len(answered.reply.body)}B " in line


# --- time ---

ROWS = 30_000
SCAN = '{ products(filter: {search: "nowhere"}) { id } }'
SCANS = (
    "{ " + " ".join(f'a{n}: products(filter: {{search: "nowhere{n}"}}) {{ id }}' for n in range(100)) + " }"
)
# The most that introspection tells for the points that an operation may cost: 28 MB.
MUCH_OF_THE_SCHEMA = f"""
    {{ a: __schema {{ ...S }} b: __schema {{ ...S }} c: __schema {{ ...S }} d: __schema {{ ...S }} }}
    fragment S on __Schema {{ types {{ fields {{ type {{ ofType {{ ...T }} }} }} }} }}
    fragment T on __Type {{ {" ".join(f"f{n}: fields {{ ...F }}" for n in range(90))} }}
    fragment F on __Field {{ name description type {{ ...L }} args {{ name description type {{ ...L }} }} }}
    fragment L on __Type {{ kind name description ofType {{ kind name description ofType {{ kind name }} }} }}
"""
FILL = f"""
    INSERT INTO products (id, sku, name, price, currency, stock, status, created_at, updated_at, version)
    WITH RECURSIVE n(i) AS (SELECT 100001 UNION ALL SELECT i + 1 FROM n WHERE i < 100000 + {ROWS})
    SELECT '01900000-0000-7000-8000-000000' || CAST(i AS text), 'x' || CAST(i AS text), name, price, currency,
    stock, status, created_at, updated_at, version FROM products, n WHERE id = '{{}}'
"""


@pytest.fixture(scope="module")
def crowded(engine: str, new_service: Callable[..., Service]) -> Service:
    """A service with little time and many products."""
    service = new_service(engine, graphql_timeout="0.1")
    service.run(service._execute(text(FILL.format(shop.a_product(service)["id"]))))
    return service


@ACCEPTS
@pytest.mark.parametrize("query", [SCANS, MUCH_OF_THE_SCHEMA], ids=["scans", "introspection"])
def test_an_operation_is_stopped_when_its_time_is_over(crowded: Service, query: str, accept: str) -> None:
    """TIMEOUT, soon after; what it had found is not told, and the service goes on."""
    process = Service(crowded.database_url, graphql_timeout="0.05")
    try:
        began = time.monotonic()
        answered = ask(process, query, accept=accept)
        assert time.monotonic() - began < 5
        assert (answered.status, answered.codes) == (200, ["TIMEOUT"])
        assert answered.errors[0]["extensions"]["category"] == "system"
        assert answered.data is None
        assert got(process, "{ products(first: 1) { price } }") == {"products": [{"price": 2.5}]}
    finally:
        process.stop()


def test_what_nobody_waits_for_any_more_is_not_worked_on(
    crowded: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once TIMEOUT is answered, a single statement that would take long is stopped too, in the engine itself."""
    stops = _sqlite_stops if crowded.engine == "sqlite" else _postgres_stops
    stops(crowded, monkeypatch)


def _sqlite_stops(crowded: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan that has looked at one name when its time is over ends long before it has looked at all of them."""
    looked, over = itertools.count(), threading.Event()
    fold = sqlite._fold

    def held_up(name: Any) -> str | None:
        next(looked)
        over.wait(20)
        return fold(name)

    monkeypatch.setattr(sqlite, "_fold", held_up)
    process = Service(crowded.database_url, graphql_timeout="0.05")
    try:
        assert ask(process, SCAN).codes == ["TIMEOUT"]
    finally:
        over.set()
        process.stop()  # which waits for its threads
    assert 0 < next(looked) < ROWS


def _postgres_stops(crowded: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that waits for a lock waits no more, though the lock is still held."""

    async def work() -> None:
        async with locked(crowded):
            reply = await crowded._call("POST", PATH, {"query": SCAN}, "", {})
            assert codes(reply) == ["TIMEOUT"]
            async with asyncio.timeout(10):
                while await crowded.app.rest.performer.database.reading().row(WAITING):
                    pass

    crowded.run(work())
    assert got(crowded, "{ products(first: 1) { price } }") == {"products": [{"price": 2.5}]}


@asynccontextmanager
async def locked(service: Service) -> AsyncIterator[None]:
    """Holds what keeps all others from changing a product, and on PostgreSQL from reading one."""
    if service.engine == "sqlite":
        connection = sqlite.connect(service.database_url.removeprefix("sqlite:///"))
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")
        connection.close()
        return
    held, release = asyncio.Event(), asyncio.Event()

    async def hold(tx: Writing) -> None:
        await tx.row(Statement("locks", text("LOCK TABLE products IN ACCESS EXCLUSIVE MODE")))
        held.set()
        await release.wait()

    holding = asyncio.create_task(service.app.rest.performer.database.write(hold))
    await held.wait()
    try:
        yield
    finally:
        release.set()
        await holding


@pytest.mark.parametrize("once", [{}, {"idempotency_key": "stopped"}], ids=["no key", "key"])
def test_a_change_that_was_stopped_does_not_happen_later(crowded: Service, once: dict[str, str]) -> None:
    """TIMEOUT says that nothing was changed: what waited for its turn never gets it, and its key is free."""
    product = shop.a_product(crowded)
    query = 'mutation($id: ID!) { updateProduct(id: $id, input: {name: "Never"}) { name } }'
    body = {"query": query, "variables": {"id": product["id"]}}

    async def work() -> Reply:
        async with locked(crowded):
            return await crowded._call("POST", PATH, body, "", once)

    assert codes(crowded.run(work())) == ["TIMEOUT"]
    shop.a_user(crowded)  # whatever waited before it has had its turn
    assert shop.get(crowded, f"/v1/products/{product['id']}") == product
    if once:
        assert "idempotency-replayed" not in crowded.post(PATH, body, **once).headers


WAITING = Statement(
    "who waits for a lock in this database",
    text(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'"
        " AND wait_event_type = 'Lock'"
    ),
)


def test_others_are_answered_while_one_scans(crowded: Service) -> None:
    """A scan holds up nobody: what is asked meanwhile is answered before it."""
    process = Service(crowded.database_url)

    async def work() -> Reply:
        scan = asyncio.create_task(process._call("POST", PATH, {"query": SCANS}, "", {}))
        await asyncio.sleep(0)
        quick = await process._call("POST", PATH, {"query": "{ products(first: 1) { price } }"}, "", {})
        assert not scan.done()
        scan.cancel()
        with suppress(asyncio.CancelledError):
            await scan
        return quick

    try:
        assert process.run(work()).json["data"] == {"products": [{"price": 2.5}]}
    finally:
        process.stop()


# --- codes ---

DEACTIVATE = "mutation($id: ID!) { deactivateUser(id: $id) { id } }"
Meet = Callable[[Callable[..., Service], str, Path], Answered]


def _asked(query: str, **options: str) -> Meet:
    return lambda new, engine, folder: ask(new(engine, **options), query)


def _conflict(new: Callable[..., Service], engine: str, folder: Path) -> Answered:
    service = new(engine)
    user = shop.a_user(service)
    answers = together(service, *[(DEACTIVATE, {"id": user["id"]})] * 3, idempotency_key="k")
    return next(each for each in answers if each.errors)


def _stock(new: Callable[..., Service], engine: str, folder: Path) -> Answered:
    service = new(engine)
    body = shop.order_body(shop.a_user(service), (shop.a_product(service, stock=0), 1))
    return ask(service, "mutation($i: CreateOrderInput!) { createOrder(input: $i) { id } }", {"i": body})


def _transition(new: Callable[..., Service], engine: str, folder: Path) -> Answered:
    service = new(engine)
    query = 'mutation {{ fulfillOrder(id: "{0}") {{ id }} cancelOrder(id: "{0}") {{ id }} }}'
    return ask(service, query.format(shop.an_order(service)["id"]))


def _forbidden(new: Callable[..., Service], engine: str, folder: Path) -> Answered:
    service = new(engine)
    return ask(service, "{ products { id } }", key=service.new_key("users:read"))


def _internal(new: Callable[..., Service], engine: str, folder: Path) -> Answered:
    service = new(engine)
    service.run(service._execute(text("ALTER TABLE products RENAME TO gone")))
    return ask(service, "{ products { id } }")


def _persisted(query: str | None) -> Meet:
    body = {
        "query": query,
        "extensions": {"persistedQuery": {"version": 1, "sha256Hash": hashlib.sha256(b"x").hexdigest()}},
    }
    return lambda new, engine, folder: Answered(new(engine).post(PATH, body))


def _not_allowed(new: Callable[..., Service], engine: str, folder: Path) -> Answered:
    (folder / "one.graphql").write_text("query One { __typename }")
    return ask(new(engine, graphql_allowlist=str(folder)), "{ users { totalCount } }")


CODES: dict[str, Meet] = {
    "GRAPHQL_PARSE_FAILED": _asked("{"),
    "GRAPHQL_VALIDATION_FAILED": _asked("{ nothing }"),
    "BAD_USER_INPUT": _asked('mutation { createUser(input: {name: "", email: "x"}) { id } }'),
    "UNAUTHENTICATED": lambda new, engine, folder: ask(new(engine), "{ __typename }", key="tp_unknown1_x"),
    "FORBIDDEN": _forbidden,
    "NOT_FOUND": _asked('mutation { deactivateUser(id: "x") { id } }'),
    "CONFLICT": _conflict,
    "INSUFFICIENT_STOCK": _stock,
    "INVALID_TRANSITION": _transition,
    "QUERY_TOO_DEEP": _asked("{ users { totalCount } }", graphql_max_depth="1"),
    "QUERY_TOO_COMPLEX": _asked("{ users { totalCount } }", graphql_max_complexity="2"),
    "DOCUMENT_TOO_LARGE": _asked("{ users { totalCount } }", graphql_max_bytes="9"),
    "TIMEOUT": _asked("{ users { totalCount } }", graphql_timeout="0.000000001"),
    "RATE_LIMITED": _asked("{ users(first: 100) { nodes { id } } }", rate_limit="1/hour"),
    "PERSISTED_QUERY_NOT_FOUND": _persisted(None),
    "PERSISTED_QUERY_NOT_ALLOWED": _not_allowed,
    "PERSISTED_QUERY_HASH_MISMATCH": _persisted("{ __typename }"),
    "INTERNAL": _internal,
}


@pytest.mark.parametrize("code", CODES)
def test_every_code_can_be_met(
    engine: str, new_service: Callable[..., Service], tmp_path: Path, code: str
) -> None:
    """Each is told with its category, and what is ours with nothing to do about it."""
    answered = CODES[code](new_service, engine, tmp_path)
    assert answered.codes == [code]
    category = "system" if code in ("INTERNAL", "TIMEOUT") else "business"
    assert answered.errors[0]["extensions"]["category"] == category
    assert answered.errors[0]["message"]


def test_there_are_no_other_codes() -> None:
    """What the contract lists is all there is."""
    assert set(CODES) == {name for name, value in vars(errors).items() if name == value}
