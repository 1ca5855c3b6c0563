"""Responses: JSON documents, and problems (RFC 9457) with the one table of their statuses."""

from collections.abc import Mapping
from http import HTTPStatus
from operator import attrgetter
from typing import Any

import msgspec
import xxhash

from tradepost import problems
from tradepost.access.idempotency import Codec
from tradepost.domain.record import camel
from tradepost.http.request import Request
from tradepost.problems import MemberError, Outside, Path, Problem

encode = msgspec.json.Encoder().encode


class Answer(msgspec.Struct, frozen=True):
    """An HTTP response. One with a `secret` is encrypted when it is stored for an idempotency key."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    secret: bool = False


# How responses are stored for idempotency keys.
ANSWER_CODEC: Codec[Answer] = Codec(encode, msgspec.json.Decoder(Answer).decode, attrgetter("secret"))

JSON = (b"content-type", b"application/json")
NO_CACHE = (b"cache-control", b"private, no-cache")

STATUS: dict[type[Problem], int] = {
    problems.Malformed: HTTPStatus.BAD_REQUEST,
    problems.Unauthenticated: HTTPStatus.UNAUTHORIZED,
    problems.Forbidden: HTTPStatus.FORBIDDEN,
    problems.NotFound: HTTPStatus.NOT_FOUND,
    problems.MethodNotAllowed: HTTPStatus.METHOD_NOT_ALLOWED,
    problems.NotAcceptable: HTTPStatus.NOT_ACCEPTABLE,
    problems.Conflict: HTTPStatus.CONFLICT,
    problems.VersionRetired: HTTPStatus.GONE,
    problems.PreconditionFailed: HTTPStatus.PRECONDITION_FAILED,
    problems.TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    problems.TimedOut: HTTPStatus.REQUEST_TIMEOUT,
    problems.UnsupportedMediaType: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    problems.Invalid: HTTPStatus.UNPROCESSABLE_ENTITY,
    problems.RateLimited: HTTPStatus.TOO_MANY_REQUESTS,
    problems.Internal: HTTPStatus.INTERNAL_SERVER_ERROR,
    problems.Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}


def status_of(kind: type[Problem]) -> int:
    """The HTTP status of a kind of problem: its own, or that of its nearest base."""
    return next(int(STATUS[each]) for each in kind.__mro__ if each in STATUS)


def hash_tag(body: bytes) -> bytes:
    """The strong ETag of a representation without a version: a hash of its body."""
    return b'"' + xxhash.xxh3_128_hexdigest(body).encode() + b'"'


def problem_answer(
    problem: Problem, request: Request, names: Mapping[str | tuple[str, str], str] | None = None
) -> Answer:
    """A problem as `application/problem+json` (RFC 9457); `names` are the members' names in its version."""
    status = status_of(type(problem))
    errors = member_errors(problem, names)
    body: dict[str, Any] = {
        "type": f"{request.base_url}/problems/{problem.kind}",
        "title": problem.title,
        "status": status,
        "detail": sentence(problem, errors),
        "instance": request.path,
        "errors": errors,
    }
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        body["requestId"] = request.id
    headers = [(b"content-type", b"application/problem+json"), (b"cache-control", b"no-store")]
    return Answer(status, [*headers, *problem_headers(problem, status)], encode(body))


def problem_headers(problem: Problem, status: int) -> list[tuple[bytes, bytes]]:
    """The header fields that standards require or permit for a problem."""
    facts = problem.facts
    fields: list[tuple[bytes, bytes]] = []
    if "challenge" in facts:
        fields.append((b"www-authenticate", str(facts["challenge"]).encode()))
    if "scope" in facts:
        challenge = f'Bearer realm="tradepost", error="insufficient_scope", scope="{facts["scope"]}"'
        fields.append((b"www-authenticate", challenge.encode()))
    for fact, field in (
        ("allow", b"allow"),
        ("etag", b"etag"),
        ("accept", b"accept"),
        ("accept_patch", b"accept-patch"),
    ):
        if fact in facts:
            fields.append((field, str(facts[fact]).encode()))
    if "retry_after" in facts or status == HTTPStatus.SERVICE_UNAVAILABLE:
        fields.append((b"retry-after", str(facts.get("retry_after", 1)).encode()))
    if status in (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.REQUEST_TIMEOUT):
        fields.append((b"connection", b"close"))  # the rest of the body is not read
    return fields


def member_errors(
    problem: Problem, names: Mapping[str | tuple[str, str], str] | None = None
) -> list[dict[str, str]]:
    """The bad members of a problem in their external form: `field`, `message`, `pointer` and `code`."""
    return [_error(each, names or {}) for each in problem.errors]


def sentence(problem: Problem, errors: list[dict[str, str]]) -> str:
    """The detail of a problem, which begins with the member's name if it is about one member."""
    lone = len(errors) == 1 and errors[0]["message"] == problem.detail
    return f"{errors[0]['field']} {problem.detail}".lstrip() if lone else problem.detail


def _error(error: MemberError, names: Mapping[str | tuple[str, str], str]) -> dict[str, str]:
    path = _outside(error.path, names)
    return {"field": field_text(path), "message": error.message, "pointer": pointer(path), "code": error.code}


def field_text(path: Path) -> str:
    """`("lineItems", 0, "quantity")` → `lineItems[0].quantity`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def pointer(path: Path) -> str:
    """A JSON Pointer (RFC 6901) as a URI fragment: `#/lineItems/0/quantity`."""
    parts = [str(part).replace("~", "~0").replace("/", "~1") for part in path]
    return "#" + "".join(f"/{part}" for part in parts)


def _outside(path: Path, names: Mapping[str | tuple[str, str], str]) -> Path:
    """The path with external names of members; indexes and names that the client wrote stay as they are."""
    outside: list[str | int] = []
    above = ""
    for part in path:
        if isinstance(part, int | Outside):
            outside.append(part)
        else:
            outside.append(names.get((above, part) if above else part) or camel(part))
            above = part
    return tuple(outside)
