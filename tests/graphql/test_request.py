"""What a request asks: the same however it is sent, and named member by member where it cannot be used."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradepost.graphql.request import GraphQLRequest
from tradepost.problems import Malformed

HASH = "ab" * 32
NO_NUL = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
    | NO_NUL,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NO_NUL, inner, max_size=4),
    max_leaves=8,
)
OBJECTS = st.none() | st.dictionaries(NO_NUL, JSON, max_size=3)


@given(NO_NUL, st.none() | NO_NUL, OBJECTS, OBJECTS)
def test_a_body_and_parameters_ask_alike(
    query: str, name: str | None, variables: dict[str, Any] | None, extensions: dict[str, Any] | None
) -> None:
    """POST, GET and a message on a socket are three spellings of one request."""
    given_ = {"query": query, "operationName": name, "variables": variables, "extensions": extensions}
    parameters = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in given_.items()
        if value is not None
    }
    asked = GraphQLRequest.from_body(json.dumps(given_).encode())
    assert asked == GraphQLRequest.of(given_) == GraphQLRequest.from_parameters(parameters)
    assert (asked.query, asked.operation_name) == (query, name)
    assert (asked.variables, asked.extensions) == (variables, extensions)


@given(
    JSON | st.dictionaries(st.sampled_from(["query", "operationName", "variables", "extensions", "x"]), JSON)
)
def test_any_json_is_a_request_or_malformed(body: Any) -> None:
    """What is no request is refused as malformed, and nothing else happens."""
    raw = json.dumps(body).encode()
    try:
        asked = GraphQLRequest.from_body(raw)
    except Malformed:
        return
    assert asked.query is not None or asked.hash is not None


@given(st.binary(max_size=60))
def test_any_bytes_are_a_request_or_malformed(body: bytes) -> None:
    """Whatever arrives, nothing but `Malformed` comes out."""
    with suppress(Malformed):
        assert isinstance(GraphQLRequest.from_body(b'{"query": ' + body), GraphQLRequest)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({}, ["query"]),
        ({"query": None, "extensions": {}}, ["query"]),
        ({"query": 1}, ["query"]),
        ({"query": [], "operationName": {}}, ["query", "operation_name"]),
        ({"query": "{a}", "variables": []}, ["variables"]),
        ({"query": "{a}", "variables": "{}", "extensions": 1}, ["variables", "extensions"]),
        ({"query": "{a}", "variables": {"a": ["b", {"c": "d\0"}]}}, ["variables"]),
        ({"query": "{a}", "extensions": {"persistedQuery": 1}}, ["extensions"]),
        ({"extensions": {"persistedQuery": {"sha256Hash": HASH}}}, ["extensions"]),
        ({"extensions": {"persistedQuery": {"version": 2, "sha256Hash": HASH}}}, ["extensions"]),
        ({"extensions": {"persistedQuery": {"version": True, "sha256Hash": HASH}}}, ["extensions"]),
        ({"extensions": {"persistedQuery": {"version": 1, "sha256Hash": HASH + "\n"}}}, ["extensions"]),
        ({"extensions": {"persistedQuery": {"version": 1, "sha256Hash": HASH[2:]}}}, ["extensions"]),
    ],
)
def test_every_member_that_cannot_be_used_is_named(body: dict[str, Any], names: list[str]) -> None:
    """One answer names all that is wrong with the members of a request."""
    with pytest.raises(Malformed) as posted:
        GraphQLRequest.from_body(json.dumps(body).encode())
    with pytest.raises(Malformed) as said:
        GraphQLRequest.of(body)
    assert [error.path[0] for error in posted.value.errors] == names
    assert [error.path[0] for error in said.value.errors] == names


@pytest.mark.parametrize("name", ["variables", "extensions"])
@pytest.mark.parametrize("text", ["{", "[]", '"a"', "1", '{"a": ' + "[" * 100 + "]" * 100 + "}"])
def test_parameters_that_are_no_json_objects_are_named(name: str, text: str) -> None:
    """In a query string variables and extensions are JSON objects, nested no deeper than a body may be."""
    with pytest.raises(Malformed) as caught:
        GraphQLRequest.from_parameters({"query": "{a}", name: text})
    assert [error.path for error in caught.value.errors] == [(name,)]


def test_a_parameter_that_is_empty_is_not_given() -> None:
    """`variables=` and `variables=null` say nothing."""
    for text in ("", "null"):
        asked = GraphQLRequest.from_parameters({"query": "{a}", "variables": text, "extensions": text})
        assert (asked.variables, asked.extensions) == (None, None)


@pytest.mark.parametrize("depth", [60, 70, 500, 100_000])
def test_a_body_is_nested_only_so_deep(depth: int) -> None:
    """No depth exhausts anything: a body is read, or refused as nested too deeply."""
    body = b'{"query": "{a}", "variables": {"a": ' + b"[" * depth + b"]" * depth + b"}}"
    if depth < 64:
        assert GraphQLRequest.from_body(body).variables is not None
    else:
        with pytest.raises(Malformed, match="nested too deeply"):
            GraphQLRequest.from_body(body)


def test_what_is_not_known_is_ignored() -> None:
    """Clients may send more than the standard names."""
    asked = GraphQLRequest.of({"query": "{a}", "id": 7, "documentId": "x", "extensions": {"other": [1]}})
    assert (asked.query, asked.hash) == ("{a}", None)


def test_a_hash_is_read_in_either_case() -> None:
    """Hexadecimal digits are the same in capitals."""
    asked = GraphQLRequest.of({"extensions": {"persistedQuery": {"version": 1, "sha256Hash": HASH.upper()}}})
    assert asked.hash == HASH
