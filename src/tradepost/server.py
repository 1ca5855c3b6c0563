"""uvicorn, hardened: the head of a request is bounded in size, fields and time, and names one host; a socket
is bounded in what its client can make it hold, and let go of when the client takes nothing.

uvicorn itself bounds none of these: a head of megabytes and one that never ends are both taken, and a socket
that is to be closed is flushed first, however long that takes. What is refused here never reaches the
application; the answer is a problem all the same.
"""

import asyncio
import http.client
import logging
import re
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from ipaddress import AddressValueError, IPv6Address
from typing import Any

import msgspec
import uvicorn
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.supervisors import Multiprocess
from websockets.frames import CloseCode, Frame
from websockets.http11 import Request

from tradepost.graphql.socket import CONNECTION
from tradepost.settings import Settings

_log = logging.getLogger("tradepost.server")

_MAX_HEAD = 32 * 1024
_MAX_FIELDS = 100
_TOO_LARGE = f"The head is larger than {_MAX_HEAD} bytes or {_MAX_FIELDS} fields"
_LONG_LINE = "A line of the head of an upgrade is longer than 8192 bytes"
_MAX_MESSAGE = 1 << 20
_MAX_FRAGMENTS = 1024  # of a message: each costs more than its bytes
_MAX_UNREAD = 512  # messages that have arrived and wait for the application
_PIECE = 4096  # bytes that are looked at before their messages are counted
_KERNEL_BYTES = 1 << 16
_PING_SECONDS = 20
_LINGER_SECONDS = 15.0  # longer than uvicorn waits for the answer to a close
_SHUTDOWN_SECONDS = 1.0
_OTHER_FILES = 4096  # that are open beside sockets: connections over HTTP above all
_KEEP_ALIVE_SECONDS = 75  # longer than the idle time of common load balancers, so that they close first
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 (an address somebody may choose to listen on)
# A name or IPv4 address, or an IPv6 address in brackets, and perhaps a port (RFC 9112, 3.2; RFC 3986, 3.2.2).
# RFC 3986 lets names hold %-escapes and !$&'()*+,;= too. No name that is looked up has any, and who takes a
# `Link` field apart would misread an address with some of them.
_HOST = re.compile(rb"(?:[\w.~-]{1,255}|\[([0-9A-Fa-f:.]{2,45})\])(?::[0-9]{0,5})?")
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
        hosts = [value for name, value in self.headers if name == b"host"]
        if len(hosts) != 1 and (hosts or self.parser.get_http_version() != "1.0"):
            self._refuse(400, "A request names exactly one Host")
        if hosts and not _is_host(hosts[0].rstrip(b" \t")):
            self._refuse(400, "Host has to be a name or an address, and perhaps a port: api.example.com:8000")
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
        self.transport.write(_refusal(status, detail))
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


class HardenedSocket(WebSocketsSansIOProtocol):
    """uvicorn's protocol for WebSockets with bounds on what a client can make it hold.

    The application gets it as an extension, to look at what is unsent and to let go.
    """

    _linger: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # Else the kernel takes megabytes, and it cannot be seen whether the client takes any of them.
        with suppress(AttributeError, OSError):  # not every system has it
            connection = transport.get_extra_info("socket")
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _KERNEL_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._linger is not None:
            self._linger.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self.handshake_initiated:  # the head, which comes whole
            super().data_received(data)
            if not self.handshake_initiated:
                self.transport.write(_refusal(431, _LONG_LINE))
                self.transport.close()
            return
        for start in range(0, len(data), _PIECE):
            if self.transport.is_closing():
                break
            super().data_received(data[start : start + _PIECE])
            if self.queue.qsize() > _MAX_UNREAD:
                self._fail(CloseCode.POLICY_VIOLATION, "Too many messages at once")

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.close_sent:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[CONNECTION] = self

    def handle_cont(self, event: Frame) -> None:
        super().handle_cont(event)
        if len(self.frames) > _MAX_FRAGMENTS and not self.transport.is_closing():
            self._fail(CloseCode.MESSAGE_TOO_BIG, "Too many fragments")

    def handle_ping(self) -> None:
        if self.writable.is_set():
            super().handle_ping()
        else:  # pongs would pile up for a client that does not read them
            self.conn.data_to_send()

    def handle_parser_exception(self) -> None:
        if self.conn.close_sent is None:  # it was not even accepted yet
            self.transport.abort()
        else:
            super().handle_parser_exception()

    def start_keepalive(self) -> None:
        """The socket was accepted: the fields of that exchange, a large part of an idle socket, can go."""
        self.request.headers.clear()
        self.response.headers.clear()
        super().start_keepalive()

    def keepalive_timeout(self) -> None:
        """Nobody is there to be told; and clients reconnect after a lost connection, but not after 1011."""
        self.transport.abort()

    def shutdown(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()
        self.loop.call_later(_SHUTDOWN_SECONDS, self.transport.abort)

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True  # in its way: uvicorn would log an error

    async def run_asgi(self) -> None:
        await super().run_asgi()
        if not self.disconnected:
            self._linger = self.loop.call_later(_LINGER_SECONDS, self.transport.abort)

    def _fail(self, code: CloseCode, reason: str) -> None:
        self.conn.fail(code, reason)
        self.handle_parser_exception()


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


def _refusal(status: int, detail: str) -> bytes:
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
    return head.encode() + body


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
    allow_files(settings.graphql_max_sockets + _OTHER_FILES)
    config = configuration(settings, "tradepost.assembly:application", workers)
    listening = _listen(settings)
    threading.Thread(target=_announce, args=(listening.getsockname(), then), daemon=True).start()
    server = uvicorn.Server(config)
    if workers > 1:
        Multiprocess(config, sockets=[listening]).run()
    else:
        server.run(sockets=[listening])
        if not server.started:
            sys.exit(3)


def configuration(
    settings: Settings, application: str | Callable[[], Any], workers: int = 1
) -> uvicorn.Config:
    """How an application is served; it is given by what makes it, or by that one's name."""
    config = _Config(
        application,
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=workers,
        http=Hardened,
        ws=HardenedSocket,
        ws_max_size=_MAX_MESSAGE,
        ws_per_message_deflate=False,  # its state costs more memory than all else of an idle socket
        ws_ping_interval=_PING_SECONDS,
        ws_ping_timeout=_PING_SECONDS,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )
    config.head_seconds = settings.header_seconds
    return config


def allow_files(count: int) -> None:
    """Lets as many files be open, or as many as may be: each socket is one, and often 1024 is the limit."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 (not on every system)

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        allowed = count if hard == resource.RLIM_INFINITY else min(count, hard)
        if soft != resource.RLIM_INFINITY and soft < allowed:
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


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
