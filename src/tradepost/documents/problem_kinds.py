"""The kinds of problems, explained: what each means, whether to try again, and what it looks like."""

from http import HTTPStatus
from typing import Any, NamedTuple

from tradepost import problems
from tradepost.http.answers import status_of
from tradepost.problems import Problem
from tradepost.rest.openapi import examples

_ADVICE: dict[type[Problem], str] = {
    Problem: "Read `detail`, and correct the request before you send it again.",
    problems.Malformed: "Correct what `detail` names. The request as it was will never be taken.",
    problems.Unauthenticated: (
        "Check that the key is whole, has not expired and was not revoked. `tradepost keys list` shows the "
        "keys there are, `tradepost keys create` makes one."
    ),
    problems.Forbidden: "Use a key that has the scope. A key cannot give another more than it has itself.",
    problems.NotFound: (
        "Check the path and the id. A key that acts for a user does not see what is not that user's."
    ),
    problems.MethodNotAllowed: "Use one of the methods in `Allow`.",
    problems.NotAcceptable: "Add `application/json` to `Accept`, or `*/*`.",
    problems.Conflict: "Read the item again, and repeat the change if it still makes sense.",
    problems.Duplicate: (
        "Find the item that has the value: lists filter by it. Change that one, or use another value."
    ),
    problems.KeyInUse: "Wait a second and send the same request with the same key again.",
    problems.Final: "Leave it. What was fulfilled is kept for the books.",
    problems.VersionRetired: (
        "Move to a version that `/versions` lists as active; its documentation is at `/docs`."
    ),
    problems.PreconditionFailed: (
        "Read the item again, apply your change to what it is now, and send it with the `ETag` of that. "
        "`If-Match: *` overwrites whatever is there."
    ),
    problems.TooLarge: "Send less at once.",
    problems.UnsupportedMediaType: "Set `Content-Type`, and check that the body is what it says.",
    problems.Invalid: (
        "Correct every member that `errors` names: `field` and `pointer` say where, `code` what, for "
        "programs, and `message` what, for people. Nothing was changed."
    ),
    problems.IdempotencyKeyReused: (
        "Make a new key for each new request, and keep the key with the request where it may have to be "
        "repeated."
    ),
    problems.RateLimited: (
        "Wait the seconds that `Retry-After` says; `RateLimit` tells beforehand what is left. Requests "
        "answered 304 cost nothing."
    ),
    problems.Internal: (
        "Send it again a little later; with an `Idempotency-Key` that is always safe. If it stays, tell "
        "whoever runs the service the `requestId`."
    ),
    problems.Unavailable: (
        "Send it again after `Retry-After`, and ever later if it stays. With an `Idempotency-Key` that is "
        "always safe."
    ),
}
_HEAD = """\
# Problems

What can go wrong, as `type` in `application/problem+json` names it: the address of the service, `/problems/`,
and the kind.
"""


class Explained(NamedTuple):
    """A kind of problem for whoever met it."""

    type: str
    kind: str
    title: str
    status: int
    phrase: str
    description: str
    advice: str
    example: dict[str, Any]


def explained(base_url: str) -> list[Explained]:
    """Every kind, in the order of `problems.py`."""
    return [_explained(kind, base_url) for kind in problems.kinds()]


def _explained(kind: type[Problem], base_url: str) -> Explained:
    return Explained(
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
    """The kinds as a page of Markdown: the committed contract."""
    found = explained(base_url)
    rows = [f"| [`{each.kind}`](#{each.kind}) | {each.status} | {each.title} |" for each in found]
    table = "\n".join(["| Kind | Status | Title |", "|---|---|---|", *rows])
    parts = [
        f"## {each.kind}\n\n{each.status} · {each.title}\n\n{each.description}\n\n{each.advice}\n"
        for each in found
    ]
    return f"{_HEAD}\n{table}\n\n" + "\n".join(parts)
