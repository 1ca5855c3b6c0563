"""uvicorn, hardened: the head of a request is bounded in size, fields and time, and names one host.

uvicorn itself bounds none of these: a head of megabytes and one that never ends are both taken. What is
refused here never reaches the application; the answer is a problem all the same.
"""

import asyncio
import http.client
import logging
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import uvicorn
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.supervisors import Multiprocess

from tradepost.settings import Settings

_log = logging.getLogger("tradepost.server")

_MAX_HEAD = 32 * 1024
_MAX_FIELDS = 100
_TOO_LARGE = f"The head is larger than {_MAX_HEAD} bytes or {_MAX_FIELDS} fields"
_KEEP_ALIVE_SECONDS = 75  # longer than the idle time of common load balancers, so that they close first
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 (an address somebody may choose to listen on)
_REASONS = {
    400: ("Bad Request", "malformed-request"),
    408: ("Request Timeout", "request-timeout"),
    431: ("Request Header Fields Too Large", "too-large"),
}


class _Refused(Exception):
    """The head was refused and answered; the parser is to stop."""


class _Config(uvicorn.Config):
    """uvicorn's configuration, and how long a head may take."""

    head_seconds: float = 10.0


class Hardened(HttpToolsProtocol):
    """uvicorn's protocol with bounds on the head."""

    config: "_Config"
    _head_bytes = 0  # of the present head, in the pieces before the present one
    _piece = 0
    _in_head = True
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._piece = len(data)
        super().data_received(data)
        # A head usually arrives whole; only one that does not is counted and given a deadline.
        if self._in_head and not self.transport.is_closing():
            self._head_bytes += self._piece
            if self._head_bytes > _MAX_HEAD:
                self._write(431, _TOO_LARGE)
            elif self._deadline is None:
                self._arm()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes, self._in_head = 0, True

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._disarm()
        if len(self.headers) > _MAX_FIELDS or self._is_large():
            self._refuse(431, _TOO_LARGE)
        hosts = [name for name, _ in self.headers].count(b"host")
        if hosts != 1 and (hosts or self.parser.get_http_version() != "1.0"):
            self._refuse(400, "A request names exactly one Host")
        super().on_headers_complete()

    def _is_large(self) -> bool:
        """Whether the head is too large: it is no larger than the pieces it came in."""
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
        """A problem from before the application; where it points is relative, for there may be no host."""
        title, kind = _REASONS[status]
        request_id = secrets.token_hex(8)
        problem = {"type": f"/problems/{kind}", "title": title, "status": status, "detail": detail}
        body = msgspec.json.encode(problem | {"instance": "", "errors": []})
        head = (
            f"HTTP/1.1 {status} {title}\r\ncontent-type: application/problem+json\r\n"
            f"x-request-id: {request_id}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        _log.info("refused", extra={"status": status, "detail": detail, "request_id": request_id})
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _arm(self) -> None:
        self._deadline = self.loop.call_later(self.config.head_seconds, self._too_slow)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        if not self.transport.is_closing():
            self._write(408, f"The head did not arrive within {self.config.head_seconds:g} s")


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


def serve(settings: Settings, workers: int, then: Callable[[str], None] | None = None) -> None:
    """Serves until a signal ends it; prints one line with the address once it answers, and tells `then`."""
    config = _Config(
        "tradepost.assembly:application",
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=workers,
        http=Hardened,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )
    config.head_seconds = settings.header_seconds
    listening = _listen(settings)
    threading.Thread(target=_announce, args=(listening.getsockname(), then), daemon=True).start()
    server = uvicorn.Server(config)
    if workers > 1:
        Multiprocess(config, sockets=[listening]).run()
    else:
        server.run(sockets=[listening])
        if not server.started:
            sys.exit(3)


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        print(
            f"tradepost: cannot listen on {settings.host}:{settings.port}: {error.strerror}", file=sys.stderr
        )
        sys.exit(1)
    listening.set_inheritable(True)
    return listening


def _announce(address: tuple[Any, ...], then: Callable[[str], None] | None) -> None:
    """Prints where the service is, once it is."""
    host, port = address[0], address[1]
    near = "localhost" if host in _EVERYWHERE else host
    while True:
        connection = http.client.HTTPConnection(near, port, timeout=1)
        try:
            connection.request("GET", "/livez")
            if connection.getresponse().status == http.client.OK:
                break
        except OSError:
            time.sleep(0.02)
        finally:
            connection.close()
    shown = f"[{host}]" if ":" in host else host
    print(f"tradepost is serving on http://{shown}:{port}", flush=True)
    if then is not None:
        then(f"http://{near if host in _EVERYWHERE else shown}:{port}")
