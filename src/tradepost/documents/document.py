"""A document: what there is at one address, how it is answered, and how it is kept."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from tradepost.access.idempotency import Answer
from tradepost.documents import pages
from tradepost.http import conditional
from tradepost.http.accept import media_ranges, preference
from tradepost.http.answers import encode, hash_tag
from tradepost.http.request import Request
from tradepost.problems import MethodNotAllowed

JSON = b"application/json"
SCHEMA = b"application/schema+json"
TEXT = b"text/plain; version=0.0.4; charset=utf-8"
HTML = b"text/html; charset=utf-8"
# Stands for the service's address in what is kept: no letter of it is changed by any escaping.
HERE = "https://here.invalid"

Headers = tuple[tuple[bytes, bytes], ...]
_METHODS = ("GET", "HEAD", "OPTIONS")


class Content(NamedTuple):
    """What there is, as it is sent."""

    type: bytes
    body: bytes
    headers: Headers = ()


Page = Callable[[Request], Awaitable[Answer]]
Source = Callable[[Request], Awaitable[Content]]


@dataclass(frozen=True)
class Kept:
    """A document put together once, with `HERE` for the address of the service."""

    type: bytes
    text: str

    def at(self, base_url: str, headers: Headers = ()) -> Content:
        """The document as the service at `base_url` shows it."""
        if self.type == HTML:
            there, own = escape(base_url), pages.headers()
        else:
            there, own = encode(base_url).decode()[1:-1], ()
        return Content(self.type, self.text.replace(HERE, there).encode(), headers + own)


def kept_json(shown: Any, media_type: bytes = JSON) -> Kept:
    """JSON, to be kept."""
    return Kept(media_type, encode(shown).decode())


def kept_page(template: str, **shown: Any) -> Kept:
    """HTML, to be kept."""
    return Kept(HTML, pages.render(template, here=HERE, **shown))


def page(route: str, content: Source, check: Callable[[Request], None] | None = None) -> Page:
    """A document with its methods, its ETag and its 304; `check` raises where it is not to be had."""

    async def answer(request: Request) -> Answer:
        request.route = route
        if check is not None:
            check(request)
        allowed = ", ".join(_METHODS)
        if request.method == "OPTIONS":
            return Answer(204, [(b"allow", allowed.encode())], b"")
        if request.method not in _METHODS:
            message = f"{request.method} is not allowed here; {allowed} are"
            raise MethodNotAllowed(message, allow=allowed)
        return _shown(request, await content(request))

    return answer


def _shown(request: Request, content: Content) -> Answer:
    tag = hash_tag(content.body)
    headers = [(b"etag", tag), (b"cache-control", b"no-cache"), *content.headers]
    if conditional.not_modified(request.headers, tag):
        return Answer(304, headers, b"")
    return Answer(200, [(b"content-type", content.type), *headers], content.body)


def prefers_json(accept: bytes) -> bool:
    """Whether the client prefers JSON to HTML; a client without a preference gets HTML."""
    ranges = media_ranges(accept)
    return preference(b"application/json", ranges) > preference(b"text/html", ranges)
