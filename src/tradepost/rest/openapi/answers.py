"""The responses in the document: the header fields, the body and the problems of each status."""

from collections.abc import Iterable, Sequence
from http import HTTPStatus

from tradepost.http.answers import status_of
from tradepost.problems import Problem, VersionRetired
from tradepost.rest.openapi import examples
from tradepost.rest.openapi.headers import EVERY
from tradepost.rest.openapi.schemas import Json

_PROBLEM_JSON = "application/problem+json"
_FIELDS: dict[int, tuple[str, ...]] = {
    HTTPStatus.UNAUTHORIZED: ("WWW-Authenticate",),
    HTTPStatus.FORBIDDEN: ("WWW-Authenticate",),
    HTTPStatus.METHOD_NOT_ALLOWED: ("Allow",),
    HTTPStatus.PRECONDITION_FAILED: ("ETag",),
    HTTPStatus.TOO_MANY_REQUESTS: ("Retry-After",),
    HTTPStatus.SERVICE_UNAVAILABLE: ("Retry-After",),
}
_BEFORE_THE_RATE = (VersionRetired,)
PATCHING = "Patch"
MEMBER_ERROR: Json = {
    "type": "object",
    "description": "A member of the body that is not valid.",
    "required": ["field", "message", "pointer", "code"],
    "properties": {
        "field": {"type": "string", "description": "Path of the member, such as `lineItems[0].quantity`."},
        "message": {"type": "string", "description": "The error, for people."},
        "pointer": {"type": "string", "description": "Path of the member as a JSON Pointer (RFC 6901)."},
        "code": {"type": "string", "description": "The error, for programs; stable."},
    },
}
PROBLEM: Json = {
    "type": "object",
    "description": "An error (RFC 9457).",
    "required": ["type", "title", "status", "detail", "instance", "errors"],
    "properties": {
        "type": {"type": "string", "format": "uri", "description": "URL of a page that explains the kind."},
        "title": {"type": "string", "description": "Short description of the kind of problem."},
        "status": {"type": "integer", "description": "HTTP status of the response."},
        "detail": {"type": "string", "description": "What went wrong with this request."},
        "instance": {"type": "string", "description": "Path of the request."},
        "errors": {
            "type": "array",
            "description": "Every member that is not valid; empty if the problem is not about members.",
            "items": {"$ref": "#/components/schemas/MemberError"},
        },
        "requestId": {"type": "string", "description": "Id of the request; only if the service failed."},
    },
}


class Answers:
    """The responses of one version; the operations share the responses for problems."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self.made: Json = {}

    def success(self, description: str, fields: Iterable[str], content: Json | None = None) -> Json:
        """A response that is not a problem."""
        body = {} if content is None else {"content": content}
        return {"description": description, "headers": _refer([*EVERY, *fields]), **body}

    def problems(
        self, kinds: Iterable[type[Problem]], fields: Sequence[str], rate: Sequence[str] = (), group: str = ""
    ) -> Json:
        """A response for each status among `kinds`; those after the rate limit also have the `rate` fields.

        The responses of one `group` have the same header fields, and share a component for each set of kinds.
        """
        found: dict[int, list[type[Problem]]] = {}
        for kind in kinds:
            found.setdefault(status_of(kind), []).append(kind)
        answers = {}
        for status in sorted(found):
            own = _own_fields(status, group)
            limited = () if found[status][0] in _BEFORE_THE_RATE else rate
            name = group + "Or".join(kind.__name__ for kind in found[status])
            answer = self._problem(status, found[status], [*EVERY, *own, *limited, *fields])
            answers[str(status)] = self._named(name, answer)
        return answers

    def without_body(self, answers: Json) -> Json:
        """The responses to HEAD: those to GET with the header fields only."""
        found = {}
        for status, each in answers.items():
            name = each.get("$ref", "").rpartition("/")[2]
            answer = self.made[name] if name else each
            bare = {part: content for part, content in answer.items() if part != "content"}
            found[status] = self._named(f"{name}WithoutBody", bare) if name else bare
        return found

    def _problem(self, status: int, kinds: list[type[Problem]], fields: Sequence[str]) -> Json:
        schema = {
            "$ref": "#/components/schemas/Problem",
            "properties": {
                "type": {"enum": [f"{self._base_url}/problems/{kind.kind}" for kind in kinds]},
                "status": {"const": status},
            },
        }
        shown = {
            kind.kind: {"summary": kind.title, "value": examples.problem(kind, self._base_url)}
            for kind in kinds
        }
        return {
            "description": " Or: ".join(f"{kind.title} (`{kind.kind}`)." for kind in kinds),
            "headers": _refer(["Cache-Control", *fields]),
            "content": {_PROBLEM_JSON: {"schema": schema, "examples": shown}},
        }

    def _named(self, name: str, answer: Json) -> Json:
        if self.made.setdefault(name, answer) != answer:
            message = f"two answers are called {name}"
            raise AssertionError(message)
        return {"$ref": f"#/components/responses/{name}"}


def _own_fields(status: int, group: str) -> tuple[str, ...]:
    if status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
        return ("Accept-Patch",) if group == PATCHING else ("Accept",)
    return _FIELDS.get(status, ())


def _refer(fields: Iterable[str]) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in fields}
