"""Errors: each kind of problem has its code, and of the unexpected nothing is told."""

from typing import Any

import pytest
from graphql import FieldNode, OperationDefinitionNode, parse

from tradepost import problems
from tradepost.graphql.errors import code_of, problem_error, refused, timed_out, unexpected
from tradepost.problems import MemberError, Problem

STOCK = MemberError(("line_items", 0, "quantity"), "is more than there is", "insufficient_stock")
MOVE = MemberError(("status",), "cannot move to PENDING", "invalid_transition")
FINAL = MemberError(("line_items",), "cannot change: the order is FULFILLED", "final")
OTHER = MemberError(("user_id",), "names no user", "unknown")


@pytest.mark.parametrize("kind", list(problems.kinds()), ids=lambda kind: kind.kind)
def test_every_kind_of_problem_has_a_code(kind: type[Problem]) -> None:
    """Whatever an action or the door may refuse has a code, a category and a status that is no success."""
    problem = kind("in words")
    error = problem_error(problem, ["orders", 0], request_id="r1")
    assert error["path"] == ["orders", 0]
    assert error["extensions"]["code"] == code_of(problem)
    ours = error["extensions"]["code"] in ("INTERNAL", "TIMEOUT")
    assert error["extensions"]["category"] == ("system" if ours else "business")
    assert 400 <= refused(problem).status < 600
    assert refused(problem).status != 422


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ([STOCK], "INSUFFICIENT_STOCK"),
        ([STOCK, STOCK], "INSUFFICIENT_STOCK"),
        ([MOVE], "INVALID_TRANSITION"),
        ([FINAL], "INVALID_TRANSITION"),
        ([MOVE, FINAL], "INVALID_TRANSITION"),
        ([STOCK, OTHER], "BAD_USER_INPUT"),
        ([STOCK, MOVE], "BAD_USER_INPUT"),
        ([OTHER], "BAD_USER_INPUT"),
        ([], "BAD_USER_INPUT"),
    ],
)
def test_stock_and_status_have_codes_of_their_own(errors: list[MemberError], code: str) -> None:
    """What is wrong with an input has its own code if nothing else is wrong with it."""
    assert problem_error(problems.Invalid.of(errors) if errors else problems.Invalid("so"))["extensions"][
        "code"
    ] == (code)


def test_bad_members_are_named_as_over_rest() -> None:
    """`extensions.errors` has the field, the message, the pointer and the code of each bad member."""
    error = problem_error(problems.Invalid.of([STOCK]))
    assert error["message"] == "lineItems[0].quantity is more than there is"
    assert error["extensions"]["errors"] == [
        {
            "field": "lineItems[0].quantity",
            "message": "is more than there is",
            "pointer": "#/lineItems/0/quantity",
            "code": "insufficient_stock",
        }
    ]


def test_an_error_says_where_in_the_document_it_happened() -> None:
    """Locations are lines and columns of the fields it concerns."""
    definition = parse("{\n  a\n  b }").definitions[0]
    assert isinstance(definition, OperationDefinitionNode)
    fields = [each for each in definition.selection_set.selections if isinstance(each, FieldNode)]
    found = problem_error(problems.NotFound("gone"), ["a"], fields)["locations"]
    assert found == [{"line": 2, "column": 3}, {"line": 3, "column": 3}]


@pytest.mark.parametrize(
    "error", [unexpected("r1", ["a"]), problem_error(problems.Internal("a secret"), ["a"], request_id="r1")]
)
def test_nothing_is_told_of_the_unexpected(error: dict[str, Any]) -> None:
    """Of a failure of ours the client learns the place and the id to ask about, and no word of it."""
    assert error == {
        "message": "Something went wrong on our side",
        "path": ["a"],
        "extensions": {"code": "INTERNAL", "category": "system", "requestId": "r1"},
    }


def test_a_refusal_carries_the_fields_of_its_status() -> None:
    """What HTTP ties to a status comes with it."""
    why = refused(problems.RateLimited("slow down", retry_after=3))
    assert (why.status, why.headers) == (429, [(b"retry-after", b"3")])
    challenged = refused(problems.Unauthenticated("who are you", challenge="Bearer"))
    assert (challenged.status, challenged.headers) == (401, [(b"www-authenticate", b"Bearer")])
    assert refused(problems.MethodNotAllowed("POST it", allow="POST")).headers == [(b"allow", b"POST")]


def test_a_timeout_says_the_limit() -> None:
    """An operation that was stopped tells after how long."""
    assert timed_out(2.5)["extensions"] == {"code": "TIMEOUT", "category": "system"}
    assert "2.5 s" in timed_out(2.5)["message"]
