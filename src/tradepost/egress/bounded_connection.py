"""What a receiver may send over a connection, where aiohttp sets no bound.

aiohttp bounds the fields of a head, by size and number, and holds back a body that nobody reads. But it
queues responses, interim ones (1xx) and unsolicited ones on an idle connection alike, for as long as a
receiver cares to send them, and takes an unsolicited one for the response to the next request
(aio-libs/aiohttp#13656). So a `BoundedConnection` is put between a transport and aiohttp's protocol.
"""

import asyncio
import re
from collections.abc import Iterator
from typing import cast

from aiohttp import ClientPayloadError, StreamReader
from aiohttp.abc import AbstractStreamWriter
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import StreamWriter
from aiohttp.payload import Payload

_PIECE = 16 * 1024  # bytes handed on at once, so that little is queued before it is counted
_RESPONSES = 32  # that wait to be read: one, and the interim ones before it
_BLANK_LINE = re.compile(rb"\n\r?\n")
_BYTES = 4 * 1024 * 1024  # of an exchange: the longest possible head, and what comes of a body unread


class ResponseTooLong(ClientPayloadError):
    """A receiver sends more than a response."""


class IdleConnections:
    """The connections that carry no request, up to `most` of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._connections: set[BoundedConnection] = set()

    def add(self, connection: "BoundedConnection") -> bool:
        """Whether there was room for it."""
        if len(self._connections) >= self._most:
            return False
        self._connections.add(connection)
        return True

    def discard(self, connection: "BoundedConnection") -> None:
        """Takes it out, if it is one of them."""
        self._connections.discard(connection)


class RequestBody(Payload):
    """The body of a POST, which learns over which connection it is sent."""

    def __init__(self, body: bytes, idle: IdleConnections) -> None:
        super().__init__(body)
        self._size = len(body)
        self._idle = idle
        self._connection: BoundedConnection | None = None
        self._response: StreamReader | None = None

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._body.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Sends the whole body; after that, aiohttp waits for the response."""
        transport = cast(StreamWriter, writer).transport
        if transport is not None:
            self._connection = BoundedConnection.over(transport, self._idle)
            self._connection.begin(self)
        await writer.write(self._body)

    def read(self, response: StreamReader) -> None:
        """Takes note that the body of the response is read from now on."""
        self._response = response

    def lost(self) -> None:
        """Ends the response; aiohttp would go on waiting for the rest of one that it cannot parse."""
        response = self._response
        if response is not None and not response.is_eof() and response.exception() is None:
            response.set_exception(ClientPayloadError("it was broken off"))

    def answered(self) -> None:
        """Takes note that the response is read and aiohttp has the connection back, for another request."""
        connection = self._connection
        if connection is not None and connection.request is self:
            connection.release()

    def abort(self) -> None:
        """Aborts the connection, unless it carries another request by now.

        `close` would wait until everything is sent, and with TLS for the other side to say farewell, and
        would go on reading until then.
        """
        connection = self._connection
        if connection is not None and connection.request is self:
            connection.abort()

    @property
    def _body(self) -> bytes:
        return cast(bytes, self._value)


class BoundedConnection(asyncio.Protocol):
    """Hands on what comes over a connection, as long as it can be the response to its `request`."""

    def __init__(self, transport: asyncio.Transport, handler: ResponseHandler, idle: IdleConnections) -> None:
        self.request: RequestBody | None = None
        self._transport = transport
        self._handler = handler
        self._idle = idle
        self._count, self._cuts, self._tail = 0, 0, b""

    @classmethod
    def over(cls, transport: asyncio.Transport, idle: IdleConnections) -> "BoundedConnection":
        """The connection over one of aiohttp's transports, put there when the transport is first used."""
        protocol = transport.get_protocol()
        if isinstance(protocol, BoundedConnection):
            return protocol
        connection = cls(transport, cast(ResponseHandler, protocol), idle)
        transport.set_protocol(connection)
        return connection

    def begin(self, request: RequestBody) -> None:
        """Takes what comes from now on for the response to this request."""
        self.request = request
        self._idle.discard(self)
        self._count, self._cuts, self._tail = 0, _RESPONSES, b""

    def release(self) -> None:
        """Becomes idle, until the next request; aborts if data is left over or too many others are idle."""
        self.request = None
        if len(self._handler) or self._transport.get_write_buffer_size() or not self._idle.add(self):
            self.abort()

    def abort(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.request is None:
            self.abort()
            return
        for piece in self._pieces(data):
            self._count += len(piece)
            if self._count > _BYTES or len(self._handler) > _RESPONSES:
                self._handler.set_exception(ResponseTooLong("it does not end"))
            else:
                self._handler.data_received(piece)
            if self._handler.exception() is not None:
                self.abort()
                return

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        """Small pieces, cut where a head may end, so that an error after a head does not spoil the head."""
        start = 0
        while start < len(data):
            piece = data[start : start + _PIECE]
            if self._cuts:
                piece = self._cut(piece)
            start += len(piece)
            yield piece

    def _cut(self, piece: bytes) -> bytes:
        joined = self._tail + piece
        found = _BLANK_LINE.search(joined)
        if found is None:
            self._tail = joined[-2:]
            return piece
        self._cuts -= 1
        end, self._tail = found.end() - len(self._tail), b""
        return piece[:end]

    def eof_received(self) -> None:
        self._handler.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._handler.connection_lost(exc)
        self._idle.discard(self)
        if self.request is not None:
            self.request.lost()

    def pause_writing(self) -> None:
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._handler.resume_writing()
