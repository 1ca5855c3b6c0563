"""A request, read as far as it is needed."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from msgspec import Struct

from tradepost.problems import Malformed, TimedOut, TooLarge
from tradepost.storage.database import Reading

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MAX_BODY = 1 << 20
_BODY_SECONDS = 30.0
_MAX_PARAMETERS = 100
# Version ff and ids of nothing but zeros are not valid (W3C Trace Context, 3.2.2).
_ID = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class Disconnected(Exception):
    """The client went away before its request was whole; there is nobody to answer."""


class DatabaseUse(Struct):
    """The statements that a request took, and their time."""

    statements: int = 0
    nanoseconds: int = 0

    def add(self, reading: "Reading | DatabaseUse") -> None:
        """Adds those of a reader, a transaction or another use (`Meter`)."""
        self.statements += reading.statements
        self.nanoseconds += reading.nanoseconds


class Request:
    """One HTTP request. What the stages of its way find out is in their results, not here."""

    __slots__ = ("_configured_url", "_receive", "headers", "id", "method", "path", "scope", "started", "use")

    def __init__(
        self, scope: Scope, receive: Receive, fallback_id: str = "", configured_url: str | None = None
    ) -> None:
        self.started = time.perf_counter_ns()
        self.scope = scope
        self._receive = receive
        self._configured_url = configured_url
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers: dict[bytes, bytes] = _headers(scope["headers"])
        request_id = self.headers.get(b"x-request-id")
        self.id = request_id.decode() if request_id and _ID.fullmatch(request_id) else fallback_id
        self.use = DatabaseUse()

    @property
    def base_url(self) -> str:
        """The URL of the service: as configured, or else the one that the request was sent to."""
        if self._configured_url is not None:
            return self._configured_url
        host = self.headers.get(b"host", b"localhost").decode("latin-1").rstrip(" \t")
        return f"{self.scope['scheme']}://{host}"

    @property
    def client(self) -> str:
        """The address of the peer."""
        client = self.scope.get("client")
        return client[0] if client else "local"

    @property
    def traceparent(self) -> str | None:
        """The W3C trace context the request is part of, if it is well formed."""
        given = self.headers.get(b"traceparent", b"").decode("latin-1")
        return given if _TRACEPARENT.fullmatch(given) else None

    def query(self) -> dict[str, str]:
        """The query parameters; raises `Malformed` for one that is doubled or cannot be read."""
        raw: bytes = self.scope["query_string"]
        if not raw:
            return {}
        try:
            text = raw.decode("ascii")
            if "%" in text or "+" in text:
                pairs = parse_qsl(
                    text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS
                )
            else:
                pairs = [
                    (name, value) for name, _, value in [part.partition("=") for part in text.split("&")]
                ]
        except (UnicodeDecodeError, ValueError):
            message = "The query string cannot be read"
            raise Malformed(message) from None
        found = dict(pairs)
        if len(found) != len(pairs):
            message = "A query parameter is given twice"
            raise Malformed(message)
        if any("\x00" in text for pair in pairs for text in pair):
            message = "A query parameter must not contain a NUL character"
            raise Malformed(message)
        return found

    def check_query(self, *known: str) -> dict[str, str]:
        """The query parameters, of which only some are known; raises `Malformed` for another."""
        if not self.scope["query_string"]:
            return {}
        found = self.query()
        unknown = [name for name in found if name not in known]
        if unknown:
            message = f"There is no query parameter {unknown[0]} here"
            raise Malformed(message)
        return found

    async def body(self) -> bytes:
        """The whole body; `TooLarge` before more than the limit is read, `Disconnected` if it ends early."""
        declared = self.headers.get(b"content-length")
        if declared is not None and int(declared) > MAX_BODY:
            raise _too_large()
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                return await self._pieces()
        except TimeoutError:
            raise TimedOut(f"The body did not arrive within {_BODY_SECONDS:g} s") from None

    async def _pieces(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > MAX_BODY:
                raise _too_large()
            more = message.get("more_body", False)
        return b"".join(parts)


def _headers(raw: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """By name; a field sent on several lines is one list (RFC 9110, 5.3)."""
    found = dict(raw)
    if len(found) != len(raw):
        found = {}
        for name, value in raw:
            found[name] = found[name] + b", " + value if name in found else value
    return found


def _too_large() -> TooLarge:
    return TooLarge(f"The body is larger than {MAX_BODY} bytes")
