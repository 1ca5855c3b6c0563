"""Problems: the errors that callers can meet, as a small tree that each surface translates by one table.

    Problem
    ├── Malformed            cannot be read                   ├── TooLarge · TimedOut
    ├── Unauthenticated      no or bad credentials            ├── UnsupportedMediaType
    ├── Forbidden            lacks a scope                    ├── Invalid             members break rules
    ├── NotFound                                              │   └── IdempotencyKeyReused
    ├── MethodNotAllowed                                      ├── RateLimited
    ├── NotAcceptable                                         ├── Unavailable
    ├── Conflict             Duplicate · KeyInUse · Final     └── Internal
    ├── VersionRetired
    └── PreconditionFailed

The docstring of a kind is the text of its page at `/problems/<kind>`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

Path = tuple[str | int, ...]


class Outside(str):
    """A name that the client sent and that is not a name of a member."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class MemberError:
    """A bad member: its path (`("line_items", 0, "quantity")`), a message and a stable code."""

    path: Path
    message: str
    code: str


class Problem(Exception):
    """An error that the caller is told about.

    `facts` are values for a surface's translation, such as `scope` or `retry_after` in seconds.
    """

    kind: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, detail: str, errors: Sequence[MemberError] = (), **facts: object) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)
        self.facts = facts


class Malformed(Problem):
    """The request cannot be read: broken JSON, a body that is not an object, an unknown or invalid query
    parameter, or an invalid header. `detail` names the part. Correct it and send the request again."""

    kind = "malformed-request"
    title = "The request cannot be read"


class Unauthenticated(Problem):
    """The request has no API key, or one that is unknown, expired or revoked. Send
    `Authorization: Bearer tp_…` with a valid key."""

    kind = "unauthenticated"
    title = "A valid API key is needed"


class Forbidden(Problem):
    """The API key is valid but has no permission for this request. `detail` names the scope that it lacks;
    use a key with that scope."""

    kind = "forbidden"
    title = "The API key may not do this"


class NotFound(Problem):
    """There is nothing at this address: the path is unknown, or the item never existed or was deleted."""

    kind = "not-found"
    title = "There is nothing here"


class MethodNotAllowed(Problem):
    """The address exists but does not support this method. `Allow` lists the methods that it supports."""

    kind = "method-not-allowed"
    title = "The method is not allowed here"


class NotAcceptable(Problem):
    """No representation matches the `Accept` header. Accept `application/json`, or omit the header."""

    kind = "not-acceptable"
    title = "No acceptable representation"


class Conflict(Problem):
    """The request conflicts with the current state, or with another request at the same time. Read the item
    again and decide whether to repeat the change."""

    kind = "conflict"
    title = "The request conflicts with the present state"


class Duplicate(Conflict):
    """Another item already has this value, which must be unique, such as an email address or an SKU. `errors`
    names the member."""

    kind = "duplicate"
    title = "Such an item exists already"


class KeyInUse(Conflict):
    """A request with the same `Idempotency-Key` is still running. Wait a moment and send yours again."""

    kind = "idempotency-key-in-use"
    title = "A request with this key is running"


class Final(Conflict):
    """The item is an accounting record and cannot be removed."""

    kind = "final"
    title = "The item can no longer be removed"


class VersionRetired(Problem):
    """This API version was retired after its sunset date. `/versions` lists the versions that are served."""

    kind = "version-retired"
    title = "This API version is retired"


class PreconditionFailed(Problem):
    """The condition in `If-Match` or `If-None-Match` is false: the item has changed since you read it. The
    response has its current `ETag`. Read the item again, reapply your change and retry."""

    kind = "precondition-failed"
    title = "The item has changed"


class TooLarge(Problem):
    """The body is larger than the service accepts (1 MiB)."""

    kind = "too-large"
    title = "The body is too large"


class TimedOut(Problem):
    """The request did not arrive completely within the time limit. Send it again over a faster connection."""

    kind = "request-timeout"
    title = "The request took too long to arrive"


class UnsupportedMediaType(Problem):
    """This address does not accept the `Content-Type` of the body. Send `application/json`; PATCH also
    accepts `application/merge-patch+json`."""

    kind = "unsupported-media-type"
    title = "The media type is not supported"


class Invalid(Problem):
    """The body can be read, but members are missing, unknown or of the wrong type, or break a rule. `errors`
    lists all of them."""

    kind = "invalid"
    title = "Members of the body are not valid"

    @classmethod
    def of(cls, errors: Sequence[MemberError], **facts: object) -> "Invalid":
        """One problem for all these errors."""
        detail = errors[0].message if len(errors) == 1 else f"{len(errors)} members are not valid"
        return cls(detail, errors, **facts)


class IdempotencyKeyReused(Invalid):
    """This `Idempotency-Key` was used before, with a different request. Use a new key for a new request."""

    kind = "idempotency-key-reused"
    title = "The idempotency key belongs to another request"


class RateLimited(Problem):
    """There were too many requests. Wait for the number of seconds in `Retry-After`."""

    kind = "rate-limited"
    title = "Too many requests"


class Internal(Problem):
    """An unexpected error occurred. It was logged with the request id in `X-Request-Id`; quote this id when
    you ask for help."""

    kind = "internal"
    title = "Something went wrong on our side"


class Unavailable(Problem):
    """The service cannot answer at the moment, because it cannot reach its database or is stopping. Try again
    shortly. Repeat a change with the same `Idempotency-Key`, because it may have been made even though the
    database did not confirm it."""

    kind = "unavailable"
    title = "The service is not available"


def invalid(path: Path, message: str, code: str) -> Invalid:
    """The problem for a single bad member."""
    return Invalid(message, [MemberError(path, message, code)])


def kinds() -> Iterator[type[Problem]]:
    """Every kind of problem that a caller can meet, in the order of this file."""
    waiting = list(reversed(Problem.__subclasses__()))
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting.extend(reversed(kind.__subclasses__()))
