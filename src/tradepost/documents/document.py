"""A document: the content at one address, its HTTP methods, and its cache."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from tradepost.access.caller import Permission
from tradepost.documents import pages
from tradepost.http import conditional
from tradepost.http.accept import media_ranges, preference
from tradepost.http.access_control import AccessControl, Admission
from tradepost.http.answers import Answer, encode, hash_tag
from tradepost.http.exchange import Exchange, Handler, failure_answer
from tradepost.http.request import Request
from tradepost.problems import MethodNotAllowed, Problem

JSON = b"application/json"
SCHEMA = b"application/schema+json"
TEXT = b"text/plain; version=0.0.4; charset=utf-8"
HTML = b"text/html; charset=utf-8"
# Stands for the URL of the service in cached documents. No escaping changes any of its characters.
HERE = "https://here.invalid"

Headers = tuple[tuple[bytes, bytes], ...]
_METHODS = ("GET", "HEAD", "OPTIONS")
_ALLOWED = ", ".join(_METHODS)
_OPTIONS = Answer(204, [(b"allow", _ALLOWED.encode())], b"")


class Content(NamedTuple):
    """The content of a document, as it is sent."""

    type: bytes
    body: bytes
    headers: Headers = ()


class Guard(NamedTuple):
    """What a document needs that is not public."""

    access_control: AccessControl
    permission: Permission


Source = Callable[[Request], Awaitable[Content]]
Life = Callable[[Request], tuple[Headers, Problem | None]]


@dataclass(frozen=True)
class CachedDocument:
    """A document rendered once, with `HERE` for the URL of the service."""

    type: bytes
    text: str

    def at(self, base_url: str, headers: Headers = ()) -> Content:
        """The content, with `base_url` for the URL of the service."""
        if self.type == HTML:
            escaped, own = escape(base_url), pages.headers()
        else:
            escaped, own = encode(base_url).decode()[1:-1], ()
        return Content(self.type, self.text.replace(HERE, escaped).encode(), headers + own)


def cached_json(value: Any, media_type: bytes = JSON) -> CachedDocument:
    """A JSON document."""
    return CachedDocument(media_type, encode(value).decode())


def cached_page(template: str, **values: Any) -> CachedDocument:
    """An HTML document, rendered from a template."""
    return CachedDocument(HTML, pages.render(template, here=HERE, **values))


def page(route: str, content: Source, life: Life | None = None, guard: Guard | None = None) -> Handler:
    """Answers GET, HEAD and OPTIONS of a document, with its ETag and 304.

    `life` gives the headers of every answer, and the problem of a document that is no more; `guard` lets
    callers in, and without it the document is public. Other methods raise `MethodNotAllowed`.
    """

    async def answer(request: Request) -> Exchange:
        headers, refusal = life(request) if life else ((), None)
        admission: Admission | None = None
        try:
            _check(request, refusal)
            if guard is not None and request.method != "OPTIONS":
                admission = await guard.access_control.admit(request)
                admission.admitted(guard.permission)
            made = _OPTIONS if request.method == "OPTIONS" else _response(request, await content(request))
        except Exception as failure:  # noqa: BLE001 (each has its answer; an unexpected one is logged)
            made = failure_answer(failure, request)
        return Exchange(Answer(made.status, [*made.headers, *headers], made.body), route, admission)

    return answer


def _check(request: Request, refusal: Problem | None) -> None:
    if refusal is not None:
        raise refusal
    if request.method not in _METHODS:
        message = f"{request.method} is not allowed here; use {_ALLOWED}"
        raise MethodNotAllowed(message, allow=_ALLOWED)


def _response(request: Request, content: Content) -> Answer:
    tag = hash_tag(content.body)
    headers = [(b"etag", tag), (b"cache-control", b"no-cache"), *content.headers]
    if conditional.not_modified(request.headers, tag):
        return Answer(304, headers, b"")
    return Answer(200, [(b"content-type", content.type), *headers], content.body)


def prefers_json(accept: bytes) -> bool:
    """Whether the client prefers JSON to HTML; a client without a preference gets HTML."""
    ranges = media_ranges(accept)
    return preference(b"application/json", ranges) > preference(b"text/html", ranges)
