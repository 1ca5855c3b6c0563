"""HTTP/1.1: the head of a request is bounded in size, fields and time, and names one host; trailer fields are
dropped, within the same bounds.

uvicorn itself bounds none of these: it takes a head of megabytes, and one that never ends. What is refused
here never reaches the application; the answer is a problem all the same.
"""

import asyncio
import re
from functools import partial
from ipaddress import AddressValueError, IPv6Address
from typing import Any

import uvicorn
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from tradepost.protocols.refusal import refusal

_MAX_HEAD = 32 * 1024
_MAX_FIELDS = 100
_TOO_LARGE = f"is larger than {_MAX_HEAD} bytes or {_MAX_FIELDS} fields"
# A name or IPv4 address, or an IPv6 address in brackets, and perhaps a port (RFC 9112, 3.2; RFC 3986, 3.2.2).
# RFC 3986 lets names hold %-escapes and !$&'()*+,;= too. No name that is looked up has any, and who takes a
# `Link` field apart would misread an address with some of them.
_HOST = re.compile(rb"(?:[\w.~-]{1,255}|\[([0-9A-Fa-f:.]{2,45})\])(?::[0-9]{0,5})?")


class _Refused(Exception):
    """The head or trailer was refused and answered; the parser is to stop."""


class Config(uvicorn.Config):
    """uvicorn's configuration, and how long a head may take."""

    head_seconds: float = 10.0


class Hardened(HttpToolsProtocol):
    """uvicorn's protocol with bounds on the head, and on the trailer that may follow a chunked body.

    `headers` holds the fields of the head, which the application gets, and then those of the trailer, which
    are dropped (RFC 9110, 6.5.1).
    """

    config: Config
    _head_bytes = 0  # of the present head or trailer, in the pieces before the present one
    _piece = 0
    _in_head = True
    _in_trailer = False  # or between a chunk's size and its first byte: the parser announces both alike
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        fields, self._piece = self.headers, len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        # A head or trailer usually arrives whole; only one that does not is counted and given a deadline.
        if self._in_head or (self._in_trailer and self.headers is fields):
            self._head_bytes += self._piece
            self._bound(is_large=self._head_bytes > _MAX_HEAD)
        # The piece in which a trailer begins may hold a whole body, so its fields are counted instead. After
        # the line with a chunk's size alone, more body may follow: the deadline is not the head's.
        elif self._in_trailer and (self.headers or not data.endswith(b"\n")):
            self._bound(is_large=self._is_large())

    def _bound(self, *, is_large: bool) -> None:
        """More of a head or trailer is to come."""
        if is_large:
            self._write(431, self._what(_TOO_LARGE))
        elif self._deadline is None:
            self._arm()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes, self._in_head = 0, True

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._end_fields()
        hosts = [value for name, value in self.headers if name == b"host"]
        if len(hosts) != 1 and (hosts or self.parser.get_http_version() != "1.0"):
            self._refuse(400, "A request names exactly one Host")
        if hosts and not _is_host(hosts[0].rstrip(b" \t")):
            self._refuse(
                400, "Host must be a name or an address, with or without a port, such as api.example.com:8000"
            )
        super().on_headers_complete()

    def on_chunk_header(self) -> None:
        self.headers, self._head_bytes, self._in_trailer = [], 0, True

    def on_body(self, body: bytes) -> None:
        self._in_trailer = False
        super().on_body(body)

    def on_chunk_complete(self) -> None:
        if self._in_trailer:
            self._end_fields()
            self._in_trailer = False

    def _end_fields(self) -> None:
        """The head or trailer is complete."""
        self._disarm()
        if self._is_large():
            self._refuse(431, self._what(_TOO_LARGE))

    def _is_large(self) -> bool:
        """Whether what has arrived of a head or trailer is too large. It is no larger than its pieces."""
        if len(self.headers) > _MAX_FIELDS:
            return True
        if self._head_bytes + self._piece <= _MAX_HEAD:
            return False
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > _MAX_HEAD

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        super()._start_asgi_task(cycle, partial(_answered_whole, cycle, app))

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            self._write(400, msg)

    def _refuse(self, status: int, detail: str) -> None:
        self._write(status, detail)
        raise _Refused(detail)

    def _write(self, status: int, detail: str) -> None:
        """Answers and closes; only closes if a trailer's request has its answer or waits behind another."""
        if not (self._in_trailer and (self.cycle.response_started or self.pipeline)):
            self.transport.write(refusal(status, detail))
        if self._in_trailer:
            self.cycle.disconnected = True  # whatever the application answers is not sent
        self.transport.close()

    def _what(self, failure: str) -> str:
        return f"The {'trailer' if self._in_trailer else 'head'} {failure}"

    def _arm(self) -> None:
        self._deadline = self.loop.call_later(self.config.head_seconds, self._too_slow)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        if not self.transport.is_closing():
            self._write(408, self._what(f"did not arrive within {self.config.head_seconds:g} s"))


def _is_host(value: bytes) -> bool:
    """Whether links may begin with it. An empty one, which RFC 9112 permits for some targets, is none."""
    spelled = _HOST.fullmatch(value)
    if spelled is None or spelled[1] is None:
        return spelled is not None
    try:
        IPv6Address(spelled[1].decode())
    except AddressValueError:
        return False
    return True


async def _answered_whole(
    cycle: RequestResponseCycle, app: ASGI3Application, scope: Any, receive: Any, send: Any
) -> None:
    """Runs the application, and writes an answer that comes in one piece in one piece.

    uvicorn looks through each field of an answer for what must not be in one, and writes head and body apart;
    the application's fields are its own and were checked where they came in.
    """
    start: dict[str, Any] = {}

    async def send_whole(message: Any) -> None:
        if message["type"] == "http.response.start" and _is_plain(cycle, message):
            start.update(message)
        elif start and not message.get("more_body"):
            _write_whole(cycle, start["status"], start["headers"], message["body"])
        else:
            await send(message)

    await app(scope, receive, send_whole)


def _is_plain(cycle: RequestResponseCycle, message: Any) -> bool:
    fields = message["headers"]
    return cycle.keep_alive and not cycle.flow.write_paused and (b"connection", b"close") not in fields


def _write_whole(
    cycle: RequestResponseCycle, status: int, headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    if cycle.disconnected:
        return
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    fields = [b"%b: %b\r\n" % field for field in (*cycle.default_headers, *headers)]
    cycle.transport.write(b"".join((STATUS_LINE[status], *fields, b"\r\n", body)))
    cycle.message_event.set()
    cycle.on_response()
