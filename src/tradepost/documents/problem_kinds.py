"""The kinds of problems, explained: meaning, advice and an example of each."""

from http import HTTPStatus
from typing import Any, NamedTuple

from tradepost import problems
from tradepost.http.answers import status_of
from tradepost.problems import Problem
from tradepost.rest.openapi import examples

_ADVICE: dict[type[Problem], str] = {
    Problem: "Read `detail`, and correct the request before you send it again.",
    problems.Malformed: "Correct the part that `detail` names. The same request will never succeed.",
    problems.Unauthenticated: (
        "Check that the key is complete, has not expired and was not revoked. `tradepost keys list` lists "
        "the keys, and `tradepost keys create` creates one."
    ),
    problems.Forbidden: "Use a key that has the scope. A key cannot create another with more scopes.",
    problems.NotFound: ("Check the path and the id. A key that acts for a user only sees that user's items."),
    problems.MethodNotAllowed: "Use one of the methods in `Allow`.",
    problems.NotAcceptable: "Add `application/json` to `Accept`, or `*/*`.",
    problems.Conflict: "Read the item again, and repeat the change if it still applies.",
    problems.Duplicate: (
        "Find the item that has the value, by filtering the list. Change that item, or use another value."
    ),
    problems.KeyInUse: "Wait a second and send the same request with the same key again.",
    problems.Final: "Do not repeat the request. Fulfilled orders are kept as records.",
    problems.VersionRetired: (
        "Switch to a version that `/versions` lists as active. Its documentation is at `/docs`."
    ),
    problems.PreconditionFailed: (
        "Read the item again, apply your change to its present state, and send it with the new `ETag`. "
        "`If-Match: *` overwrites any state."
    ),
    problems.TooLarge: "Send a smaller body.",
    problems.UnsupportedMediaType: "Set `Content-Type`, and check that it matches the body.",
    problems.Invalid: (
        "Correct every member in `errors`: `field` and `pointer` locate it, `code` is the reason for "
        "programs, and `message` the reason for people. Nothing was changed."
    ),
    problems.IdempotencyKeyReused: (
        "Create a new key for each new request, and store it with the request for as long as you may have to "
        "repeat it."
    ),
    problems.RateLimited: (
        "Wait for the seconds in `Retry-After`. `RateLimit` shows in advance how many requests are left. "
        "Requests answered 304 do not count."
    ),
    problems.Internal: (
        "Send the request again later; with an `Idempotency-Key` that is always safe. If the problem "
        "persists, report the `requestId` to the operator of the service."
    ),
    problems.Unavailable: (
        "Send the request again after `Retry-After`, with growing delays if the problem persists. With an "
        "`Idempotency-Key` that is always safe."
    ),
}
_HEAD = """\
# Problems

Everything that can go wrong. The `type` in `application/problem+json` is the URL of the service, `/problems/`
and the kind.
"""


class ExplainedProblem(NamedTuple):
    """A kind of problem, explained to people who met it."""

    type: str
    kind: str
    title: str
    status: int
    phrase: str
    description: str
    advice: str
    example: dict[str, Any]


def explained(base_url: str) -> list[ExplainedProblem]:
    """All kinds, in the order of `problems.py`."""
    return [_explained(kind, base_url) for kind in problems.kinds()]


def _explained(kind: type[Problem], base_url: str) -> ExplainedProblem:
    return ExplainedProblem(
        type=f"{base_url}/problems/{kind.kind}",
        kind=kind.kind,
        title=kind.title,
        status=status_of(kind),
        phrase=HTTPStatus(status_of(kind)).phrase,
        description=" ".join((kind.__doc__ or "").split()),
        advice=next(_ADVICE[each] for each in kind.__mro__ if each in _ADVICE),
        example=examples.problem(kind, base_url),
    )


def markdown(base_url: str) -> str:
    """All kinds as a page of Markdown, which is a committed contract."""
    kinds = explained(base_url)
    rows = [f"| [`{each.kind}`](#{each.kind}) | {each.status} | {each.title} |" for each in kinds]
    table = "\n".join(["| Kind | Status | Title |", "|---|---|---|", *rows])
    parts = [
        f"## {each.kind}\n\n{each.status} · {each.title}\n\n{each.description}\n\n{each.advice}\n"
        for each in kinds
    ]
    return f"{_HEAD}\n{table}\n\n" + "\n".join(parts)
