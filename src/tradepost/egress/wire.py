"""What a receiver may send over a connection, where aiohttp sets no bound.

aiohttp bounds the fields of a head, by size and number, and holds back a body that nobody reads. But it
queues answers, interim ones (1xx) and unasked ones on an idle connection alike, for as long as a receiver
cares to send them, and takes an unasked one for the answer to the next request (aio-libs/aiohttp#13656). So a
`Wire` is put between a transport and aiohttp's protocol.
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
_ANSWERS = 32  # that wait to be read: one, and the interim ones before it
_BLANK_LINE = re.compile(rb"\n\r?\n")
_BYTES = 4 * 1024 * 1024  # of an exchange: the longest head there may be, and what of a body comes unread


class Flood(ClientPayloadError):
    """A receiver sends more than an answer."""


class Letter(Payload):
    """The body of a POST, which learns which wire it goes out over."""

    def __init__(self, body: bytes, idle: "Idle") -> None:
        super().__init__(body)
        self._size = len(body)
        self._idle = idle
        self._wire: Wire | None = None
        self._answer: StreamReader | None = None

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._body.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Goes out as a whole; what aiohttp does next is wait for the answer."""
        transport = cast(StreamWriter, writer).transport
        if transport is not None:
            self._wire = Wire.over(transport, self._idle)
            self._wire.take(self)
        await writer.write(self._body)

    def read(self, answer: StreamReader) -> None:
        """The body of the answer is read from now on."""
        self._answer = answer

    def lost(self) -> None:
        """The connection is gone, and so is the body; aiohttp waits for the rest of one it cannot parse."""
        answer = self._answer
        if answer is not None and not answer.is_eof() and answer.exception() is None:
            answer.set_exception(ClientPayloadError("it was broken off"))

    def answered(self) -> None:
        """The answer is read to its end, and its connection with aiohttp again, to be used for another."""
        wire = self._wire
        if wire is not None and wire.carries is self:
            wire.rest()

    def abort(self) -> None:
        """Breaks the connection off, unless it carries another by now.

        `close` would wait for what was not sent yet, and with TLS for the other side to say farewell, and go
        on reading meanwhile.
        """
        wire = self._wire
        if wire is not None and wire.carries is self:
            wire.abort()

    @property
    def _body(self) -> bytes:
        return cast(bytes, self._value)


class Wire(asyncio.Protocol):
    """Hands on what comes over a connection, as long as it can be the answer to the letter it carries."""

    def __init__(self, transport: asyncio.Transport, handler: ResponseHandler, idle: "Idle") -> None:
        self.carries: Letter | None = None
        self._transport = transport
        self._handler = handler
        self._idle = idle
        self._count, self._cuts, self._tail = 0, 0, b""

    @classmethod
    def over(cls, transport: asyncio.Transport, idle: "Idle") -> "Wire":
        """The wire over a transport of aiohttp's, put there when it is first used."""
        protocol = transport.get_protocol()
        if isinstance(protocol, Wire):
            return protocol
        wire = cls(transport, cast(ResponseHandler, protocol), idle)
        transport.set_protocol(wire)
        return wire

    def take(self, letter: Letter) -> None:
        """What comes from now on is the answer to this letter."""
        self.carries = letter
        self._idle.discard(self)
        self._count, self._cuts, self._tail = 0, _ANSWERS, b""

    def rest(self) -> None:
        """Carries nothing, until the next letter; with something left over or too many idle, never again."""
        self.carries = None
        if len(self._handler) or self._transport.get_write_buffer_size() or not self._idle.add(self):
            self.abort()

    def abort(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.carries is None:
            self.abort()
            return
        for piece in self._pieces(data):
            self._count += len(piece)
            if self._count > _BYTES or len(self._handler) > _ANSWERS:
                self._handler.set_exception(Flood("it does not end"))
            else:
                self._handler.data_received(piece)
            if self._handler.exception() is not None:
                self.abort()
                return

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        """Small ones, cut where a head may end: what is wrong behind one does not take it along."""
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
        if self.carries is not None:
            self.carries.lost()

    def pause_writing(self) -> None:
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._handler.resume_writing()


class Idle:
    """The wires that carry nothing, `most` of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._wires: set[Wire] = set()

    def add(self, wire: Wire) -> bool:
        """False if there is no room for it."""
        if len(self._wires) >= self._most:
            return False
        self._wires.add(wire)
        return True

    def discard(self, wire: Wire) -> None:
        self._wires.discard(wire)
