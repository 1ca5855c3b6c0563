"""What can go wrong, as one small tree; every surface has one table that translates it.

    Problem
    ├── Malformed            cannot be read as asked          ├── TooLarge · TimedOut
    ├── Unauthenticated      no or bad credentials            ├── UnsupportedMediaType
    ├── Forbidden            lacks a scope                    ├── Invalid             members break rules
    ├── NotFound                                              │   └── IdempotencyKeyReused
    ├── MethodNotAllowed                                      ├── RateLimited
    ├── NotAcceptable                                         ├── Unavailable
    ├── Conflict             Duplicate · KeyInUse · Final     └── Internal
    ├── VersionRetired
    └── PreconditionFailed

The docstring of a kind is what its page at `/problems/<kind>` says.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

Path = tuple[str | int, ...]


class Outside(str):
    """A name as the client wrote it, which is not one of ours."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class MemberError:
    """One bad member: where it is (`("line_items", 0, "quantity")`), what to do, and a stable code."""

    path: Path
    message: str
    code: str


class Problem(Exception):
    """Something the caller can be told about."""

    kind: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, detail: str, errors: Sequence[MemberError] = (), **facts: object) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)
        self.facts = facts


class Malformed(Problem):
    """The request could not be read: broken JSON, a body that is not an object, an unknown or bad query
    parameter, or a bad header. `detail` names the part; correct it and send again."""

    kind = "malformed-request"
    title = "The request cannot be read"


class Unauthenticated(Problem):
    """The request carried no API key, or one that is unknown, expired or revoked. Send
    `Authorization: Bearer tp_…` with a valid key."""

    kind = "unauthenticated"
    title = "A valid API key is needed"


class Forbidden(Problem):
    """The API key is valid but may not do this. `detail` names the scope it lacks; use a key that has it."""

    kind = "forbidden"
    title = "The API key may not do this"


class NotFound(Problem):
    """Nothing is at this address: the path is unknown, the item was never there, or it has been deleted."""

    kind = "not-found"
    title = "There is nothing here"


class MethodNotAllowed(Problem):
    """The address exists but does not take this method. The `Allow` header lists those it takes."""

    kind = "method-not-allowed"
    title = "The method is not allowed here"


class NotAcceptable(Problem):
    """No representation fits the `Accept` header. Accept `application/json`, or leave the header out."""

    kind = "not-acceptable"
    title = "No acceptable representation"


class Conflict(Problem):
    """The request collides with the present state, or lost a race against another. Read the item again
    and decide anew."""

    kind = "conflict"
    title = "The request conflicts with the present state"


class Duplicate(Conflict):
    """Another item already has a value that must be unique, such as an email or a sku. `errors` names the
    member."""

    kind = "duplicate"
    title = "Such an item exists already"


class KeyInUse(Conflict):
    """A request with the same `Idempotency-Key` is still running. Wait a moment and send it again."""

    kind = "idempotency-key-in-use"
    title = "A request with this key is running"


class Final(Conflict):
    """The item is an accounting record and stays as it is."""

    kind = "final"
    title = "The item can no longer be removed"


class VersionRetired(Problem):
    """This API version was retired after its sunset date. `/versions` lists those that are served."""

    kind = "version-retired"
    title = "This API version is retired"


class PreconditionFailed(Problem):
    """`If-Match` or `If-None-Match` does not hold: the item changed since it was read. The answer carries
    its current `ETag`; read it again, apply the change anew and retry."""

    kind = "precondition-failed"
    title = "The item has changed"


class TooLarge(Problem):
    """The body is larger than the service takes (1 MiB)."""

    kind = "too-large"
    title = "The body is too large"


class TimedOut(Problem):
    """The request did not arrive whole within the time it may take. Send it again, over a connection that
    keeps up."""

    kind = "request-timeout"
    title = "The request took too long to arrive"


class UnsupportedMediaType(Problem):
    """The body's `Content-Type` is not one this address takes. Send `application/json`; PATCH also takes
    `application/merge-patch+json`."""

    kind = "unsupported-media-type"
    title = "The media type is not supported"


class Invalid(Problem):
    """The body was read, but members are missing, of the wrong type, unknown, or break a rule. `errors`
    lists every one of them."""

    kind = "invalid"
    title = "Members of the body are not valid"

    @classmethod
    def of(cls, errors: Sequence[MemberError], **facts: object) -> "Invalid":
        """All that is wrong, in one problem."""
        detail = errors[0].message if len(errors) == 1 else f"{len(errors)} members are not valid"
        return cls(detail, errors, **facts)


class IdempotencyKeyReused(Invalid):
    """This `Idempotency-Key` was used before with another request. Use a new key for a new request."""

    kind = "idempotency-key-reused"
    title = "The idempotency key belongs to another request"


class RateLimited(Problem):
    """Too many requests. Wait as long as `Retry-After` says."""

    kind = "rate-limited"
    title = "Too many requests"


class Internal(Problem):
    """Something unexpected happened. It has been logged under the request id in `X-Request-Id`; quote it
    when you ask for help."""

    kind = "internal"
    title = "Something went wrong on our side"


class Unavailable(Problem):
    """The service cannot answer at the moment, because its database cannot be reached or it is stopping.
    Try again shortly. Send a change again under the same `Idempotency-Key`: where the database did not
    confirm it, it may have been made."""

    kind = "unavailable"
    title = "The service is not available"


def invalid(path: Path, message: str, code: str) -> Invalid:
    """The problem of a single bad member."""
    return Invalid(message, [MemberError(path, message, code)])


def kinds() -> Iterator[type[Problem]]:
    """Every kind a caller can meet, in the order of this file."""
    waiting = list(reversed(Problem.__subclasses__()))
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting.extend(reversed(kind.__subclasses__()))
