"""The page at /graphql: write and run operations in a browser, with the schema next to them.

It consists of plain JavaScript modules from this service, so it needs no build and works offline. It exists
only outside production (docs/decisions/0028).
"""

import re
from functools import cache
from pathlib import Path

from tradepost.documents import pages
from tradepost.documents.document import HTML, Content, Headers, Source
from tradepost.documents.document import page as document
from tradepost.http.exchange import Exchange, Handler
from tradepost.http.request import Request

PATH = "/graphql"

_FILES = Path(__file__).with_name("templates") / "playground"
_TYPES = {".js": b"text/javascript; charset=utf-8", ".css": b"text/css; charset=utf-8"}
# The hosts that a policy can name; browsers send no others.
_HOST = re.compile(r"[A-Za-z0-9.-]+(:\d+)?|\[[0-9a-fA-F:.]+\](:\d+)?")
_ASSET: Headers = ((b"x-content-type-options", b"nosniff"),)
_VARIABLES = '{\n  "orderId": ""\n}\n'


def assets() -> dict[str, Handler]:
    """The scripts and the style of the page by their addresses."""
    files = {f"{PATH}/{file.name}": file for file in sorted(_FILES.iterdir()) if file.suffix in _TYPES}
    return {address: document(address, _file(path)) for address, path in files.items()}


async def page(request: Request) -> Exchange:
    """The page itself, in answer to a browser's GET /graphql."""
    return await _page(request)


async def _content(request: Request) -> Content:
    return Content(HTML, _html(), ((b"vary", b"Accept"), *_headers(request)))


_page = document(PATH, _content)


@cache
def _html() -> bytes:
    # Relative links make the page work at any address.
    example = (_FILES / "example.graphql").read_text("utf-8")
    return pages.render("playground.html", here=".", example=example, variables=_VARIABLES).encode()


def _headers(request: Request) -> Headers:
    """The page may run its own scripts and connect to its own service; text never becomes markup."""
    return pages.headers(
        "script-src 'self'",
        f"connect-src 'self' {_sockets(request)}".strip(),
        "require-trusted-types-for 'script'",
        styles="'self'",
    )


def _sockets(request: Request) -> str:
    """The WebSockets of the service, which some browsers do not count as 'self'."""
    host = request.headers.get(b"host", b"").decode("latin-1")
    return f"ws://{host} wss://{host}" if _HOST.fullmatch(host) else ""


def _file(path: Path) -> Source:
    asset = Content(_TYPES[path.suffix], path.read_bytes(), _ASSET)

    async def content(request: Request) -> Content:
        del request
        return asset

    return content
