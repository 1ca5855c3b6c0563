"""Problems speak of JSON and of the limit, never of Python or of a library, whatever provokes them."""

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests import shop
from tests.graphql.asking import ask
from tests.rest.test_bad_input import BROKEN, NAMES, _target
from tests.service import Reply, Service
from tradepost import catalogue
from tradepost.domain.record import members

FOREIGN = re.compile(
    r"`|Expected|(?<!If-)\bNone\b|msgspec|Traceback|Exception|Error\b|codec|<class|<\w+>|</|\bhas to\b|\bis none of\b"
    r"|\b(?:str|int|float|dict|list|tuple|bytes|bool|NoneType|object at)\b(?! of)"
)
VALUES: list[Any] = [
    None,
    True,
    "",
    "x",
    "\0",
    "x" * 20_000,
    "2026-02-30T00:00:00Z",
    "1969-12-31",
    "2026-11-20T25:00:00Z",
    0,
    -1,
    1.5,
    1e-9,
    1e300,
    2**63,
    10**400,
    [],
    [None],
    ["", "x", 7],
    ["x"] * 101,
    {},
    {"a": [{}]},
    [{}],
    [{"quantity": 0, "productId": None, "x": 1}],
    [{"productId": "x", "quantity": 1}],
]


@pytest.fixture(scope="module")
def service(new_service: Callable[..., Service]) -> Service:
    """A service on one engine: messages do not depend on the storage."""
    return new_service()


def told(problem: Any) -> Iterator[str]:
    """All that a problem, or an answer with errors, says in words."""
    for each in [problem, *problem.get("errors", []), *problem.get("extensions", {}).get("errors", [])]:
        yield from (each[name] for name in ("title", "detail", "message") if name in each)
    for each in problem.get("errors", []):
        yield from (inner["message"] for inner in each.get("extensions", {}).get("errors", []))


def foreign(reply: Reply) -> list[str]:
    """The sentences of an answer in words that are not the interface's."""
    if reply.status < 400:
        return []
    assert reply.status < 500, reply
    return [text for text in told(reply.json) if FOREIGN.search(text)]


@pytest.mark.parametrize(
    "text",
    [
        "Expected `str`, got `int`",
        "Object missing required field `name`",
        "'utf-8' codec can't decode byte 0xff",
        "<class 'ValueError'>",
        "is None",
        "has to be a number",
        "ConnectionResetError",
    ],
)
def test_foreign_words_are_found(text: str) -> None:
    """What Python and libraries say is found."""
    assert FOREIGN.search(text)


@pytest.mark.parametrize("name", NAMES)
def test_a_bad_body_is_told_in_words_of_json(service: Service, name: str) -> None:
    """Every member of every resource with values of each kind, unknown members, and bodies that are no JSON."""
    method, path, good = _target(service, name)
    kind = name.partition(" ")[2].replace(" below", "").replace(" ", "_").lower()
    record = next(each.record for each in catalogue.RESOURCES if each.record.kind == kind)
    names = [*(each.json_name for each in members(record)), "lineItems", "unknown"]
    bodies: list[Any] = [{**good, member: value} for member in names for value in VALUES]
    bodies += [*BROKEN.values(), {}, dict.fromkeys(good), {member: [] for member in good}]
    replies = [service.call(method, path, body) for body in bodies]
    assert len({reply.body for reply in replies if reply.status >= 400}) > 20
    assert {text for reply in replies for text in foreign(reply)} == set()


def _queries() -> Iterator[str]:
    """Lists asked for badly: every parameter with values that it does not take."""
    values = ["", "x", "-1", "0", "1.5", "9" * 30, "NaN", "a,b", "%00", "%ff", "2026-02-30", "Zm9v", "W10"]
    for resource in catalogue.RESOURCES:
        if not resource.top:
            continue
        for name in ("limit", "cursor", "offset", "sort", "fields", "nothing", "version"):
            yield from (f"/v1/{resource.segment}?{name}={value}" for value in values)
        for each in members(resource.record):
            for operator in ("", "[gte]", "[lt]", "[x]"):
                parameter = quote(f"{each.json_name}{operator}")
                yield from (f"/v1/{resource.segment}?{parameter}={value}" for value in values)
    yield from ("/v1/orders?limit=1&limit=2", "/v1/orders?cursor=a&offset=1", "/v1/nothing", "/v9/orders")
    yield from (
        "/orders?version=9",
        "/v1/orders/x/line-items/y",
        "/v1/orders/x?fields=y",
        "/v1/orders?" + "a=1&" * 200,
    )


def test_a_bad_query_is_told_in_words_of_the_interface(service: Service) -> None:
    """Every parameter of every list with values that it does not take."""
    assert {(query, text) for query in _queries() for text in foreign(service.get(query))} == set()


HEADERS = {
    "authorization": ["Basic x", "Bearer", "Bearer x", "Bearer tp_x", "é"],
    "accept": ["text/html", "application/json;q=0", "x", "application/vnd.tradepost.v9+json"],
    "content-type": ["text/plain", "", "application/json; charset=latin-1", "x"],
    "if-match": ["x", '"1', '"1"', "*", "W/"],
    "if-none-match": ["x", '"1', "*"],
    "idempotency-key": ["", "x" * 300, "é"],
    "api-version": ["x", "1999-01-01", "9", "2026-13-01"],
    "prefer": ["x", "return=nothing"],
}


def test_a_bad_header_is_told_in_words_of_the_interface(service: Service) -> None:
    """Every header that is read, with values that it does not take, on each method."""
    user = shop.a_user(service)
    found: set[tuple[str, str, str]] = set()
    for name, values in HEADERS.items():
        for value in values:
            sent = {name.replace("-", "_"): value}
            for method, path in (
                ("GET", "/users"),
                ("POST", "/users"),
                *((m, f"/users/{user['id']}") for m in ("PUT", "PATCH")),
            ):
                body = None if method == "GET" else user
                found |= {(name, value, text) for text in foreign(service.call(method, path, body, **sent))}
    assert found == set()


INPUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "CreateUserInput": ("createUser", {"name": "Ada", "email": "ada@shop.example"}),
    "CreateProductInput": ("createProduct", {"sku": "s", "name": "n", "price": 1, "currency": "GBP"}),
    "CreateOrderInput": ("createOrder", {"userId": "x", "lineItems": [{"productId": "y", "quantity": 1}]}),
}


@pytest.mark.parametrize("input_type", INPUTS)
def test_a_bad_input_of_graphql_is_told_in_words_of_json(service: Service, input_type: str) -> None:
    """What the rules refuse in a mutation's input, in the words of REST."""
    name, good = INPUTS[input_type]
    query = f"mutation($input: {input_type}!) {{ {name}(input: $input) {{ id }} }}"
    found = set()
    for member in good:
        for value in ("", "x" * 300, "\0", -1, 0, 1e300, [], [{"productId": "x", "quantity": 0}]):
            answer = ask(service, query, {"input": {**good, member: value}})
            found |= {text for error in answer.errors for text in _ours(error)}
    assert {text for text in found if FOREIGN.search(text)} == set()


def _ours(error: Any) -> list[str]:
    """The sentences of an error that are not graphql-core's, which speak of GraphQL's types."""
    errors = error["extensions"].get("errors", [])
    return (
        []
        if error["message"].startswith("Variable '$")
        else [error["message"], *[each["message"] for each in errors]]
    )


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": 1},
        {"query": "{ users { totalCount } }", "variables": 1},
        {"query": "{ users(first: -1) { totalCount } }"},
        {"query": '{ users(after: "x") { totalCount } }'},
        {"query": "query A { users { totalCount } } query B { users { totalCount } }"},
        {"query": "{ users { totalCount } }", "operationName": "A"},
        {"query": "{ users { totalCount } }", "extensions": {"persistedQuery": 1}},
        {"query": "subscription { orderStatusChanged(orderId: 1) { id } }"},
        *[each for each in BROKEN.values() if each != b"{}"],
    ],
)
def test_a_bad_graphql_request_is_told_in_words_of_json(service: Service, body: Any) -> None:
    """What is refused before anything runs."""
    for headers in ({}, {"content_type": "text/plain"}):
        reply = service.post("/graphql", body, **headers)
        assert [text for text in told(reply.json) if FOREIGN.search(text)] == []
