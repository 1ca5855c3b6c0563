"""The documents: small, public, each at one address, each with its ETag."""

from collections.abc import Awaitable, Callable

from tradepost.access.idempotency import Answer
from tradepost.http.answers import encode, hash_tag
from tradepost.http.request import Request
from tradepost.metrics import Metrics
from tradepost.problems import MethodNotAllowed
from tradepost.rest import conditional
from tradepost.rest.routes import Rest
from tradepost.storage.database import Database

Page = Callable[[Request], Awaitable[Answer]]
Content = tuple[bytes, bytes]  # content type, body

_METHODS = ("GET", "HEAD", "OPTIONS")


class Documents:
    """Builds the pages by their paths."""

    def __init__(self, rest: Rest, database: Database, metrics: Metrics, prefix: str) -> None:
        self._rest = rest
        self._database = database
        self._metrics = metrics
        self._prefix = prefix

    def pages(self) -> dict[str, Page]:
        """Every page by its path."""
        return {
            "/livez": _page("/livez", self._live),
            "/readyz": _page("/readyz", self._ready),
            "/metrics": _page("/metrics", self._figures),
            "/versions": _page("/versions", self._versions),
        }

    async def _live(self, request: Request) -> Content:
        del request
        return b"application/json", b'{"status":"live"}'

    async def _ready(self, request: Request) -> Content:
        del request
        await self._database.schema_version()
        return b"application/json", b'{"status":"ready"}'

    async def _figures(self, request: Request) -> Content:
        del request
        return b"text/plain; version=0.0.4; charset=utf-8", self._metrics.exposition()

    async def _versions(self, request: Request) -> Content:
        del request
        return b"application/json", encode({"items": self._rest.lifecycle.document(), "next": None})


def _page(route: str, content: Callable[[Request], Awaitable[Content]]) -> Page:
    """A page with its methods, its ETag and its 304."""

    async def answer(request: Request) -> Answer:
        request.route = route
        if request.method == "OPTIONS":
            return Answer(204, [(b"allow", ", ".join(_METHODS).encode())], b"")
        if request.method not in _METHODS:
            message = f"{request.method} is not allowed here; {', '.join(_METHODS)} are"
            raise MethodNotAllowed(message, allow=", ".join(_METHODS))
        content_type, body = await content(request)
        tag = hash_tag(body)
        headers = [(b"etag", tag), (b"cache-control", b"no-cache")]
        if conditional.not_modified(request.headers, tag):
            return Answer(304, headers, b"")
        return Answer(200, [(b"content-type", content_type), *headers], body)

    return answer
