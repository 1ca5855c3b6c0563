"""A document: the content at one address, its HTTP methods, and its cache."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from tradepost.documents import pages
from tradepost.http import conditional
from tradepost.http.accept import media_ranges, preference
from tradepost.http.answers import Answer, encode, hash_tag
from tradepost.http.request import Request
from tradepost.problems import MethodNotAllowed

JSON = b"application/json"
SCHEMA = b"application/schema+json"
TEXT = b"text/plain; version=0.0.4; charset=utf-8"
HTML = b"text/html; charset=utf-8"
# Stands for the URL of the service in cached documents. No escaping changes any of its characters.
HERE = "https://here.invalid"

Headers = tuple[tuple[bytes, bytes], ...]
_METHODS = ("GET", "HEAD", "OPTIONS")


class Content(NamedTuple):
    """The content of a document, as it is sent."""

    type: bytes
    body: bytes
    headers: Headers = ()


Page = Callable[[Request], Awaitable[Answer]]
Source = Callable[[Request], Awaitable[Content]]


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


def page(route: str, content: Source, check: Callable[[Request], None] | None = None) -> Page:
    """Answers GET, HEAD and OPTIONS of a document, with its ETag and 304.

    `check` may raise a problem instead. Other methods raise `MethodNotAllowed`.
    """

    async def answer(request: Request) -> Answer:
        request.route = route
        if check is not None:
            check(request)
        allowed = ", ".join(_METHODS)
        if request.method == "OPTIONS":
            return Answer(204, [(b"allow", allowed.encode())], b"")
        if request.method not in _METHODS:
            message = f"{request.method} is not allowed here; use {allowed}"
            raise MethodNotAllowed(message, allow=allowed)
        return _response(request, await content(request))

    return answer


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
