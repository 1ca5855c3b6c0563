"""WebSockets: what a client can make one hold is bounded, and a client that takes nothing is disconnected.

uvicorn itself flushes a socket that is to be closed first, however long that takes.
"""

import asyncio
import socket
from contextlib import suppress
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame
from websockets.http11 import Request

from tradepost.graphql.socket import CONNECTION
from tradepost.protocols.refusal import refusal

_LONG_LINE = "A line of the head of an upgrade is longer than 8192 bytes"
_MAX_FRAGMENTS = 1024  # of a message: each costs more than its bytes
_MAX_UNREAD = 512  # messages that have arrived and wait for the application
_PIECE = 4096  # bytes that are looked at before their messages are counted
_KERNEL_BYTES = 1 << 16
_LINGER_SECONDS = 15.0  # longer than uvicorn waits for the answer to a close
_SHUTDOWN_SECONDS = 1.0


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
                self.transport.write(refusal(431, _LONG_LINE))
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
