"""The page at /graphql: queries and subscriptions written and run in a browser, the schema beside them.

All of it is ours and comes from this service, so it works offline. It is plain JavaScript modules: there is
nothing to build. Outside production only.
"""

import re
from functools import cache
from pathlib import Path

from tradepost.access.idempotency import Answer
from tradepost.documents import pages
from tradepost.documents.document import HTML, Content, Headers, Page, Source
from tradepost.documents.document import page as document
from tradepost.http.request import Request

PATH = "/graphql"

_FILES = Path(__file__).with_name("templates") / "playground"
_TYPES = {".js": b"text/javascript; charset=utf-8", ".css": b"text/css; charset=utf-8"}
# What a policy can name: a host that a browser sends is never anything else.
_HOST = re.compile(r"[A-Za-z0-9.-]+(:\d+)?|\[[0-9a-fA-F:.]+\](:\d+)?")
_ASSET: Headers = ((b"x-content-type-options", b"nosniff"),)
_VARIABLES = '{\n  "orderId": ""\n}\n'


def assets() -> dict[str, Page]:
    """The page's scripts and its style by their addresses."""
    found = {f"{PATH}/{file.name}": file for file in sorted(_FILES.iterdir()) if file.suffix in _TYPES}
    return {address: document(address, _file(path)) for address, path in found.items()}


async def page(request: Request) -> Answer:
    """The page itself, for a browser's GET /graphql."""
    return await _page(request)


async def _content(request: Request) -> Content:
    return Content(HTML, _html(), ((b"vary", b"Accept"), *_headers(request)))


_page = document(PATH, _content)


@cache
def _html() -> bytes:
    # Its links are relative: it works under whatever address it is reached at.
    example = (_FILES / "example.graphql").read_text("utf-8")
    return pages.render("playground.html", here=".", example=example, variables=_VARIABLES).encode()


def _headers(request: Request) -> Headers:
    """The page runs its own scripts and talks to its own service; text never becomes markup."""
    return pages.headers(
        "script-src 'self'",
        f"connect-src 'self' {_sockets(request)}".strip(),
        "require-trusted-types-for 'script'",
        styles="'self'",
    )


def _sockets(request: Request) -> str:
    """The service's WebSockets, which not every browser counts as 'self'."""
    host = request.headers.get(b"host", b"").decode("latin-1")
    return f"ws://{host} wss://{host}" if _HOST.fullmatch(host) else ""


def _file(path: Path) -> Source:
    shown = Content(_TYPES[path.suffix], path.read_bytes(), _ASSET)

    async def content(request: Request) -> Content:
        del request
        return shown

    return content
