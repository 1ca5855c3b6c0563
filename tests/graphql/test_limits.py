"""What an operation nests and costs, and what a document may be before anybody looks closer."""

from collections.abc import Callable
from typing import Any

import pytest
from graphql import get_introspection_query
from hypothesis import given
from hypothesis import strategies as st

from tests.graphql.operations import SCHEMA, VARIABLES, Drawn, drawn
from tradepost.graphql.documents import DocumentCache
from tradepost.graphql.errors import Refused
from tradepost.graphql.limits import Limits
from tradepost.graphql.operation import ExecutableOperation

WIDE = Limits(max_depth=100, max_complexity=10**100, max_tokens=10**6, max_bytes=10**7, max_aliases=10**6)


def operation(text: str, limits: Limits = WIDE) -> ExecutableOperation:
    return DocumentCache(SCHEMA, {}, limits).get(text).operation(None)


def points(text: str, **variables: Any) -> int:
    return operation(text).complexity.of(variables)


def refused(text: str, limits: Limits, **variables: Any) -> dict[str, Any]:
    """What the only error of a refusal says beside its message."""
    with pytest.raises(Refused) as caught:
        operation(text, limits).complexity.of(variables)
    assert caught.value.status == 400
    (error,) = caught.value.errors
    extensions: dict[str, Any] = error["extensions"]
    assert str(extensions["limit"]) in error["message"]
    assert str(extensions.get("found", "")) in error["message"]
    return extensions


@given(drawn(), st.dictionaries(st.sampled_from(VARIABLES), st.none() | st.integers(0, 300)))
def test_fragments_and_variables_change_nothing_about_the_measures(
    document: Drawn, given_: dict[str, int | None]
) -> None:
    """Depth and complexity are those of the operation with each fragment unfolded and each variable filled in."""
    found = operation(document.text)
    assert found.depth == document.depth
    assert found.complexity.of(given_) == document.points(given_)


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("{ __typename }", 1),
        ('{ user(id: "1") { id name } }', 3),
        ("{ users { totalCount } }", 1 + 20),
        ("{ users(first: 5) { nodes { id } } }", 1 + 5 * 2),
        ("{ users(first: 5) { edges { cursor node { id } } pageInfo { endCursor } } }", 1 + 5 * 6),
        ("{ users(first: 1000) { totalCount } }", 1 + 100),
        ("{ users(first: 0) { totalCount } }", 1 + 1),
        ("{ users(first: null) { totalCount } }", 1 + 20),
        ("{ products { id } }", 1 + 50),
        ("{ products(first: 1000) { id } }", 1 + 200),
        ('{ order(id: "1") { lineItems { product { id } } } }', 1 + 1 + 10 * 2),
        ("{ users(first: 2) { nodes { orders(first: 3) { nodes { id } } } } }", 1 + 2 * (2 + 3 * 2)),
        ("{ __schema { types { fields { name } } } }", 4),
        ('subscription { orderStatusChanged(orderId: "1") { id } }', 2),
    ],
)
def test_a_field_costs_the_pages_above_it(text: str, cost: int) -> None:
    """1 for each field, times the sizes of the pages and lists that it is in."""
    assert points(text) == cost


def test_a_page_size_in_a_variable_counts_as_in_the_text() -> None:
    """Whether `first` stands in the document or in the variables makes no difference."""
    text = "query($n: Int) { users(first: $n) { nodes { orders(first: $n) { totalCount } } } }"
    for first in (None, 0, 1, 20, 100, 1000):
        written = text.replace("$n)", f"{'null' if first is None else first})").replace("query($n: Int)", "")
        assert points(text, n=first) == points(written)


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        ("{ __typename }", 1),
        ("{ users { nodes { id } } }", 3),
        ("{ ... on Query { users { ... { nodes { id } } } } }", 3),
        ("{ ...F } fragment F on Query { users { ...G } } fragment G on UserConnection { nodes { id } }", 3),
        ("{ __schema { types { fields { type { ofType { name } } } } } }", 1),
        ("{ ...F } fragment F on Query { __schema { queryType { name } } }", 1),
    ],
)
def test_depth_counts_fields_alone(text: str, depth: int) -> None:
    """Fragments add no level, and below `__schema` and `__type` none counts."""
    assert operation(text).depth == depth


def test_tools_can_introspect() -> None:
    """The standard introspection query is within the limits as they are unless set."""
    found = operation(get_introspection_query(), Limits())
    assert found.introspects
    assert found.complexity.of({}) < 1000


@pytest.mark.parametrize(
    ("text", "introspects"),
    [
        ("{ __typename }", False),
        ("{ users { __typename } }", False),
        ('{ __type(name: "User") { name } }', True),
        ("{ ... { a: __schema { description } } }", True),
        ("{ ...F } fragment F on Query { __schema { description } }", True),
    ],
)
def test_introspection_is_told_apart(text: str, introspects: bool) -> None:
    """Whoever asks for `__schema` or `__type`, however hidden, introspects; `__typename` is no introspection."""
    assert operation(text).introspects is introspects


def test_each_operation_has_its_own_measures() -> None:
    """One that introspects or is costly says nothing about its neighbours."""
    text = "query A { __schema { description } } query B { users { nodes { id } } } query C { __typename }"
    document = DocumentCache(SCHEMA, {}, WIDE).get(text)
    found = [(each.depth, each.introspects, each.complexity.of({})) for each in document.operations()]
    assert found == [(1, True, 2), (3, False, 41), (1, False, 1)]


AT_LIMITS = [
    ("{ users { nodes { id } } }", "max_depth", 3, "QUERY_TOO_DEEP"),
    ("{ users { nodes { id } } }", "max_complexity", 41, "QUERY_TOO_COMPLEX"),
    ("{ users { nodes { id } } }", "max_tokens", 9, "DOCUMENT_TOO_LARGE"),
    ("{ users # ü\n { nodes { id } } }", "max_bytes", 32, "DOCUMENT_TOO_LARGE"),
    ("{ a: __typename ... { b: __typename } }", "max_aliases", 2, "DOCUMENT_TOO_LARGE"),
    ("{ __schema { a: description b: description } }", "max_aliases", 2, "DOCUMENT_TOO_LARGE"),
    ("{ __typename #\n#\n#\n#\n }", "max_tokens", 4, "DOCUMENT_TOO_LARGE"),
]


@pytest.mark.parametrize(("text", "name", "measure", "code"), AT_LIMITS)
def test_a_limit_is_what_is_just_allowed(text: str, name: str, measure: int, code: str) -> None:
    """What measures as much as a limit passes, one more is refused, and the refusal names both."""
    assert operation(text, _with(name, measure)).complexity.of({})
    extensions = refused(text, _with(name, measure - 1))
    assert extensions["code"] == code
    assert extensions["limit"] == measure - 1
    assert extensions.get("found", measure) == measure


def test_complexity_is_judged_with_the_variables_of_the_request() -> None:
    """The same operation passes with a small page and is refused with a large one."""
    text = "query($n: Int) { users(first: $n) { nodes { id } } }"
    limits = _with("max_complexity", 21)
    assert operation(text, limits).complexity.of({"n": 10}) == 21
    assert refused(text, limits, n=11)["found"] == 23


def _with(name: str, value: int) -> Limits:
    return Limits(**{**vars(WIDE), name: value})


DOUBLING: list[Callable[[int], str]] = [
    lambda n: (
        "query($n: Int) { ...F0 } "
        + " ".join(f"fragment F{i} on Query {{ ...F{i + 1} ...F{i + 1} }}" for i in range(n))
        + f" fragment F{n} on Query {{ users(first: $n) {{ totalCount }} }}"
    ),
    lambda n: (
        "query($n: Int) { ...F0 } "
        + " ".join(f"fragment F{i} on Query {{ ...F{i + 1} ... {{ ...F{i + 1} }} }}" for i in range(n))
        + f" fragment F{n} on Query {{ users(first: $n) {{ totalCount }} }}"
    ),
]


@pytest.mark.parametrize("make", DOUBLING)
def test_fragments_that_double_are_added_up_once(make: Callable[[int], str]) -> None:
    """A document whose unfolding has 2⁹⁰ fields is measured as fast as it is read, and exactly."""
    assert points(make(90), n=1) == 2**90 * 2


def test_fragments_in_a_circle_are_found_by_validation() -> None:
    """Measures of a document without end come to an end, and it is refused for its circle."""
    text = "{ ...A } fragment A on Query { users { ...B } } fragment B on UserConnection { nodes { ...C } }"
    with pytest.raises(Refused) as caught:
        operation(
            f"{text} fragment C on User {{ orders {{ nodes {{ user {{ ...C id }} }} }} ...D }} fragment D on User {{ ...C }}"
        )
    codes = {error["extensions"]["code"] for error in caught.value.errors}
    assert codes == {"GRAPHQL_VALIDATION_FAILED"}


def test_nesting_without_fields_is_measured_without_recursion() -> None:
    """Inline fragments and chains of fragments can be as deep as tokens allow, and exhaust no stack."""
    for text in (
        "{ " + "... { " * 180 + "__typename" + " }" * 180 + " }",
        "{ ...F0 } "
        + " ".join(f"fragment F{i} on Query {{ ...F{i + 1} }}" for i in range(190))
        + " fragment F190 on Query { __typename }",
    ):
        assert operation(text, Limits()).depth == 1
        assert points(text) == 1
    chain = " ".join(f"fragment F{i} on Query {{ ...F{i + 1} }}" for i in range(240))
    with pytest.raises(Refused):
        operation(f"{{ ...F0 }} {chain} fragment F240 on Query {{ __typename }}", Limits())


@pytest.mark.parametrize("spread", [False, True])
def test_an_operation_asks_for_the_schema_a_few_times_at_most(spread: bool) -> None:
    """Aliases and fragments do not multiply introspection, which counts few points for much work."""
    asked = "__schema { types { name } }"

    def text(times: int) -> str:
        fields = " ".join(f"a{n}: {asked}" for n in range(times))
        return f"{{ ...All }} fragment All on Query {{ {fields} }}" if spread else f"{{ {fields} }}"

    assert operation(text(4)).introspects
    assert refused(text(5), WIDE) | {"limit": 4} == refused(text(5), WIDE)
    assert refused(text(5), WIDE)["code"] == "QUERY_TOO_COMPLEX"
