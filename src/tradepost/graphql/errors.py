"""Errors as GraphQL has them (specification, 7.1.2), and the one table from problems to their codes.

A request error (`Refused`) is raised before anything runs, and the answer consists of its errors. A field
error (`problem_error`, `unexpected`) comes with the data. The client learns nothing of an exception that is
not a problem, but the id under which it was logged.
"""

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any, Literal

from graphql import GraphQLError, Node

from tradepost import problems
from tradepost.http.answers import member_errors, problem_headers, sentence, status_of
from tradepost.problems import Outside, Path, Problem, invalid

Error = dict[str, Any]
Headers = Sequence[tuple[bytes, bytes]]
ResponsePath = Sequence[str | int]

GRAPHQL_PARSE_FAILED = "GRAPHQL_PARSE_FAILED"
GRAPHQL_VALIDATION_FAILED = "GRAPHQL_VALIDATION_FAILED"
BAD_USER_INPUT = "BAD_USER_INPUT"
UNAUTHENTICATED = "UNAUTHENTICATED"
FORBIDDEN = "FORBIDDEN"
NOT_FOUND = "NOT_FOUND"
CONFLICT = "CONFLICT"
INSUFFICIENT_STOCK = "INSUFFICIENT_STOCK"
INVALID_TRANSITION = "INVALID_TRANSITION"
QUERY_TOO_DEEP = "QUERY_TOO_DEEP"
QUERY_TOO_COMPLEX = "QUERY_TOO_COMPLEX"
DOCUMENT_TOO_LARGE = "DOCUMENT_TOO_LARGE"
TIMEOUT = "TIMEOUT"
RATE_LIMITED = "RATE_LIMITED"
PERSISTED_QUERY_NOT_FOUND = "PERSISTED_QUERY_NOT_FOUND"
PERSISTED_QUERY_NOT_ALLOWED = "PERSISTED_QUERY_NOT_ALLOWED"
PERSISTED_QUERY_HASH_MISMATCH = "PERSISTED_QUERY_HASH_MISMATCH"
INTERNAL = "INTERNAL"

# A class of problems that is not listed has the code of its base class.
CODES: dict[type[Problem], str] = {
    problems.Malformed: BAD_USER_INPUT,
    problems.Unauthenticated: UNAUTHENTICATED,
    problems.Forbidden: FORBIDDEN,
    problems.NotFound: NOT_FOUND,
    problems.MethodNotAllowed: BAD_USER_INPUT,
    problems.NotAcceptable: BAD_USER_INPUT,
    problems.Conflict: CONFLICT,
    problems.VersionRetired: NOT_FOUND,
    problems.PreconditionFailed: CONFLICT,
    problems.TooLarge: DOCUMENT_TOO_LARGE,
    problems.TimedOut: TIMEOUT,
    problems.UnsupportedMediaType: BAD_USER_INPUT,
    problems.Invalid: BAD_USER_INPUT,
    problems.RateLimited: RATE_LIMITED,
    problems.Internal: INTERNAL,
    problems.Unavailable: INTERNAL,
}
# Errors of members that have codes of their own, if the input has no others.
_MEMBER_CODES = {
    "insufficient_stock": INSUFFICIENT_STOCK,
    "invalid_transition": INVALID_TRANSITION,
    "final": INVALID_TRANSITION,
}
_SYSTEM = (INTERNAL, TIMEOUT)

_COERCION = re.compile(
    r"(?:Variable '\$|Argument ')(?P<name>\w+)' (?:has invalid value(?: at (?P<at>\S+))?: )?(?P<what>.*)",
    re.DOTALL,
)
_INPUT = "input"  # the argument whose members are named without it, as over HTTP
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")

# An error repeats text of the client, and is cached with the document that caused it.
_MAX_MESSAGE = 500
_MAX_LOCATIONS = 10


class Refused(Exception):
    """A request error: nothing has run.

    `status` and `headers` are those of `application/graphql-response+json` (GraphQL over HTTP, 6.4.2).
    """

    def __init__(
        self, errors: list[Error], status: int = HTTPStatus.BAD_REQUEST, headers: Headers = ()
    ) -> None:
        super().__init__(errors[0]["message"])
        self.errors = errors
        self.status = int(status)
        self.headers = list(headers)


def refusal(
    code: str, message: str, nodes: Sequence[Node] = (), status: int = HTTPStatus.BAD_REQUEST, **facts: Any
) -> Refused:
    """A request error with one code; `facts` are added to its `extensions`."""
    return Refused([_error(message, code, locations_of(nodes), None, **facts)], status)


def refused(problem: Problem, request_id: str = "") -> Refused:
    """A problem as a request error; where REST answers 422, this is 400, as the standard requires."""
    status = status_of(type(problem))
    headers = problem_headers(problem, status)
    if status == HTTPStatus.UNPROCESSABLE_ENTITY:
        status = HTTPStatus.BAD_REQUEST
    return Refused([problem_error(problem, request_id=request_id)], status, headers)


def code_of(problem: Problem) -> str:
    """The code of a problem."""
    codes = {_MEMBER_CODES.get(each.code) for each in problem.errors}
    if isinstance(problem, problems.Invalid) and len(codes) == 1:
        alone = codes.pop()
        if alone is not None:
            return alone
    return next(CODES[each] for each in type(problem).__mro__ if each in CODES)


def problem_error(
    problem: Problem,
    path: ResponsePath | None = None,
    nodes: Iterable[Node] = (),
    *,
    request_id: str = "",
) -> Error:
    """A problem as an error, with `extensions.errors` like its `errors` in REST."""
    if isinstance(problem, problems.Internal):
        return unexpected(request_id, path, nodes)
    errors = member_errors(problem)
    code = code_of(problem)
    facts: dict[str, Any] = {"errors": errors} if errors else {}
    if code == INTERNAL:
        facts["requestId"] = request_id
    return _error(sentence(problem, errors), code, locations_of(nodes), path, **facts)


def unexpected(request_id: str, path: ResponsePath | None = None, nodes: Iterable[Node] = ()) -> Error:
    """The error of an exception that is not a problem: its place, and the id under which it was logged."""
    return _error(problems.Internal.title, INTERNAL, locations_of(nodes), path, requestId=request_id)


def timed_out(seconds: float) -> Error:
    """The error of an operation that took more than `seconds`; its answer has no data."""
    return _error(f"The operation took more than {seconds:g} s and was stopped", TIMEOUT, [], None)


def syntax_error(error: GraphQLError) -> Refused:
    """The refusal of a document that cannot be parsed."""
    return Refused([_graphql_error(error, GRAPHQL_PARSE_FAILED)])


def validation_errors(errors: Iterable[GraphQLError]) -> Refused:
    """The refusal of a document that does not fit the schema, with all errors found."""
    return Refused([_graphql_error(each, GRAPHQL_VALIDATION_FAILED) for each in errors])


def coercion_errors(errors: Iterable[GraphQLError]) -> Refused:
    """The refusal of variables that do not have the declared types; each error names the member."""
    return Refused([_coercion_error(each) for each in errors])


def argument_error(error: GraphQLError, path: ResponsePath, nodes: Iterable[Node]) -> Error:
    """The error of an argument that does not have its type with these variables; names the member."""
    parts = _COERCION.match(error.message)
    if parts is None:
        return _error(error.message, BAD_USER_INPUT, locations_of(nodes), path)
    name, at = parts["name"], parts["at"] or ""
    place = at if at and name == _INPUT else f"{name}{at}"
    return problem_error(invalid(_path(place), parts["what"], "type"), path, nodes)


def locations_of(nodes: Iterable[Node]) -> list[dict[str, int]]:
    """The lines and columns of nodes in their document, from 1."""
    return _locations(GraphQLError("", list(nodes)))


def _graphql_error(error: GraphQLError, code: str) -> Error:
    return _error(error.message, code, _locations(error), None)


def _coercion_error(error: GraphQLError) -> Error:
    """graphql-core names the member only in its message: `… at .lineItems[0].quantity: …`."""
    parts = _COERCION.match(error.message)
    if parts is None:
        return _graphql_error(error, BAD_USER_INPUT)
    errors = member_errors(invalid(_path(parts["at"] or parts["name"]), parts["what"], "type"))
    return _error(error.message, BAD_USER_INPUT, _locations(error), None, errors=errors)


def _path(text: str) -> Path:
    return tuple(int(index) if index else Outside(name) for index, name in _STEP.findall(text))


def _locations(error: GraphQLError) -> list[dict[str, int]]:
    return [{"line": line, "column": column} for line, column in (error.locations or [])[:_MAX_LOCATIONS]]


def _error(
    message: str, code: str, locations: list[dict[str, int]], path: ResponsePath | None, **facts: Any
) -> Error:
    category: Literal["business", "system"] = "system" if code in _SYSTEM else "business"
    if len(message) > _MAX_MESSAGE:
        message = message[:_MAX_MESSAGE] + "…"
    error: Error = {"message": message}
    if locations:
        error["locations"] = locations
    if path is not None:
        error["path"] = list(path)
    error["extensions"] = {"code": code, "category": category, **facts}
    return error
