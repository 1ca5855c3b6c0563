"""Documents: read once, kept within bounds, and refused with all that is wrong and nothing more."""

import hashlib
from collections import OrderedDict
from typing import Any

import pytest
from graphql import get_introspection_query
from hypothesis import given
from hypothesis import strategies as st

from tests.graphql.operations import SCHEMA, Drawn, drawn
from tradepost.graphql.documents import DocumentCache
from tradepost.graphql.errors import Refused
from tradepost.graphql.limits import Limits
from tradepost.graphql.lru_cache import LRUCache

TWO = "query One { __typename } mutation Two { deactivateUser(id: 1) { id } }"


def documents(*, suggestions: bool = True) -> DocumentCache:
    return DocumentCache(SCHEMA, {}, Limits(), suggestions=suggestions)


def refusal(text: str, found: DocumentCache | None = None) -> Refused:
    with pytest.raises(Refused) as caught:
        (found or documents()).get(text)
    assert caught.value.status == 400
    return caught.value


def codes(why: Refused) -> set[str]:
    return {error["extensions"]["code"] for error in why.errors}


def test_a_document_is_read_once() -> None:
    """The same text is the same document with the same operations, so that what is kept with them stays."""
    found = documents()
    document = found.get(TWO)
    assert found.get("".join(list(TWO))) is document
    assert document.operation("One") is document.operation("One")
    assert document.hash == hashlib.sha256(TWO.encode()).hexdigest()
    assert document.text == TWO


def test_a_refusal_is_given_again_alike() -> None:
    """Who sends a bad document again is told the same, by another exception: it gathers no traces."""
    found = documents()
    first, again = refusal("{ nothing }", found), refusal("{ nothing }", found)
    assert first is not again
    assert (first.errors, first.status) == (again.errors, again.status)


@given(drawn())
def test_every_valid_document_within_limits_is_read(document: Drawn) -> None:
    """What fits the schema and the limits is never refused."""
    limits = Limits(max_depth=20, max_aliases=10_000, max_tokens=20_000, max_bytes=10**6)
    assert DocumentCache(SCHEMA, {}, limits).get(document.text).operation("Q").name == "Q"


@given(st.text() | st.text('{}()[]$:@!=|&.,# "\\\n\tabu0fragmentonquery', max_size=200))
def test_any_text_is_a_document_or_refused(text: str) -> None:
    """Whatever is sent is read or refused, with a code and a message; no other exception comes out."""
    errors: list[dict[str, Any]] = []
    try:
        assert documents().get(text).text == text
    except Refused as why:
        errors = why.errors
    for error in errors:
        assert 0 < len(error["message"]) <= 501
        assert error["extensions"]["code"].isupper()
        assert error["extensions"]["category"] == "business"


@pytest.mark.parametrize(
    ("text", "code", "locations"),
    [
        ("{ a", "GRAPHQL_PARSE_FAILED", [(1, 4)]),
        ("", "GRAPHQL_PARSE_FAILED", [(1, 1)]),
        ("{ a \0 }", "GRAPHQL_PARSE_FAILED", []),
        ("# \0\n{ __typename }", "GRAPHQL_PARSE_FAILED", []),
        ("{\n  nothing }", "GRAPHQL_VALIDATION_FAILED", [(2, 3)]),
        ("type A { b: Int }", "GRAPHQL_VALIDATION_FAILED", [(1, 1)]),
        (
            'subscription { a: orderStatusChanged(orderId: "1") { id } b: orderStatusChanged(orderId: "1") { id } }',
            "GRAPHQL_VALIDATION_FAILED",
            [(1, 59)],
        ),
        ('{ user(id: "a\\u0000") { id } }', "BAD_USER_INPUT", [(1, 12)]),
        ('{ user(id: "a\\u{00}") { id } }', "BAD_USER_INPUT", [(1, 12)]),
        ("{ " + "a { " * 250 + "}" * 250 + "}", "DOCUMENT_TOO_LARGE", []),
    ],
)
def test_what_is_wrong_has_its_code_and_its_place(
    text: str, code: str, locations: list[tuple[int, int]]
) -> None:
    """Each way to be wrong has one code, and says where in the document it is."""
    why = refusal(text)
    assert codes(why) == {code}
    found = [(each["line"], each["column"]) for each in why.errors[0].get("locations", [])]
    assert found == locations


def test_a_backslash_before_u0000_is_no_nul() -> None:
    """Only what becomes a NUL is refused, not what looks like the escape of one."""
    documents().get('{ user(id: "a\\\\u0000") { id } }')
    documents().get('{ user(id: """a\\u0000""") { id } } # \\u0000')


def test_all_errors_are_told_up_to_a_bound() -> None:
    """One answer names several mistakes; a document of nothing but mistakes is not printed for each of them."""
    assert len(refusal("{ a b c }").errors) == 3
    many = refusal("{ " + " ".join(f"a{i}" for i in range(400)) + " }").errors
    assert len(many) == 21
    assert "limit" in many[-1]["message"]
    long = refusal("{ products(filter: {" + " ".join(f"a{i}: 1" for i in range(600)) + "}) { id } }").errors
    assert len(long) < 10


def test_suggestions_are_told_only_where_the_schema_is() -> None:
    """A misspelled name is answered with those it may have meant, or with no other name of the schema at all."""
    texts = [
        "{ user(id: 1) { nam } }",
        "{ user(idd: 1) { id } }",
        "query($a: ProductFiltr) { products(filter: $a) { id } }",
        "{ products(filter: {statu: ACTIVE}) { id } }",
        "{ products(filter: {status: ACTIV}) { id } }",
        "{ user(id: 1) { ... on Usr { id } } }",
    ]
    for text in texts:
        assert "Did you mean" in refusal(text).errors[0]["message"]
        assert "Did you mean" not in str(refusal(text, documents(suggestions=False)).errors)


def test_an_operation_is_chosen_by_its_name() -> None:
    """A name chooses; without one there has to be no choice, and an empty name is none."""
    found = documents()
    assert found.get(TWO).operation("One").kind == "query"
    assert found.get(TWO).operation("Two").kind == "mutation"
    only = found.get("query Only { __typename }")
    assert only.operation(None) is only.operation("Only") is only.operation("")
    for document, name in ((found.get(TWO), None), (found.get(TWO), ""), (only, "Other")):
        with pytest.raises(Refused) as caught:
            document.operation(name)
        assert codes(caught.value) == {"BAD_USER_INPUT"}


OVERLAPPING = {
    "the same field": "{ user(id: 1) { " + "id " * 1900 + "} }",
    "the same object": "{ " + "users { totalCount } " * 300 + "}",
    "empty objects": "{ users { " + "pageInfo {} " * 600 + "} }",
    "arguments that differ": "{ " + " ".join(f"user(id: {i}) {{ id }}" for i in range(200)) + " }",
    "two levels": "{ users { " + ("nodes { " + "orders { totalCount } " * 20 + "} ") * 20 + "} }",
    "fragments side by side": "{ "
    + " ".join(f"...F{i}" for i in range(130))
    + " } "
    + " ".join(f"fragment F{i} on Query {{ users {{ totalCount }} }}" for i in range(130)),
    "fragments in a chain": "{ ...F0 } "
    + " ".join(f"fragment F{i} on Query {{ users {{ totalCount }} ...F{i + 1} }}" for i in range(130))
    + " fragment F130 on Query { __typename }",
    "fragments in a mesh": "{ ...F0 } "
    + " ".join(
        f"fragment F{i} on Query {{ users {{ totalCount }} {' '.join(f'...F{j}' for j in range(i + 1, 36))} }}"
        for i in range(36)
    ),
}


@pytest.mark.parametrize("text", OVERLAPPING.values(), ids=OVERLAPPING)
def test_what_takes_long_to_validate_is_refused_instead(text: str) -> None:
    """Documents within the limits whose fields would be compared with each other for a second are given up."""
    assert codes(refusal(text)) == {"DOCUMENT_TOO_LARGE"}


def test_what_clients_send_is_not_given_up() -> None:
    """Tools that introspect, and applications that put a page together from many fragments, are read."""
    fields = "id name email createdAt orders(first: 2) { nodes { id total lineItems { id sku } } }"
    parts = 24
    page = (
        "query Page { users(first: 5) { nodes { "
        + " ".join(f"...Part{i}" for i in range(parts))
        + " } } } "
        + " ".join(f"fragment Part{i} on User {{ {fields} }}" for i in range(parts))
    )
    for text in (get_introspection_query(), page):
        assert documents().get(text).operation(None).complexity.of({})


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 60)), max_size=40))
def test_what_is_kept_fits_its_bound(steps: list[tuple[str, int]]) -> None:
    """Of what is kept the sizes never sum up to more than allowed, and those used last are there."""
    recent: LRUCache[int] = LRUCache(100)
    model: OrderedDict[str, int] = OrderedDict()
    for key, size in steps:
        found = recent.get(key)
        assert found == model.get(key)
        if found is None:
            recent.put(key, size, size)
            model[key] = size
            while sum(model.values()) > 100:
                model.popitem(last=False)
        else:
            model.move_to_end(key)
        assert len(recent) == len(model)
