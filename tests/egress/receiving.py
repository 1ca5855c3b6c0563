"""Receivers on loopback that behave as a test wants them to, well or badly, byte by byte."""

import asyncio
import itertools
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from tradepost.egress.client import Client, Reply
from tradepost.egress.resolver import Lookup, NameResolver
from tradepost.egress.targets import Targets

WAIT = 10.0
TYPE = ("Content-Type", "application/cloudevents+json")
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


class Connection:
    """A connection that a receiver accepted."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, receiver: "Receiver"
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.sent = 0
        self._receiver = receiver

    async def request(self) -> None:
        """Reads a POST; it ends the connection's story if there is none."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode("ascii").split("\r\n")[1:-2])
        body = await self.reader.readexactly(int(fields["Content-Length"]))
        self._receiver.requests.append((head.decode("ascii").split("\r\n")[0], fields, body))

    async def say(self, *answer: bytes) -> None:
        for piece in answer:
            self.writer.write(piece)
            await self.writer.drain()
            self.sent += len(piece)

    async def say_forever(self, piece: bytes) -> None:
        """Says the same until the client has enough."""
        while True:
            await self.say(piece)
            await asyncio.sleep(0)

    async def drip(self, *pieces: bytes, seconds: float = 0.02) -> None:
        """Says a piece now and then, and the last one for ever: what a hostile receiver does to hold a client."""
        for piece in itertools.chain(pieces, itertools.repeat(pieces[-1])):
            await self.say(piece)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.reader.read()
                return


Behaviour = Callable[[Connection], Awaitable[None]]


class Receiver:
    """What came to a receiver: its requests as (request line, fields, body), and its connections."""

    def __init__(self) -> None:
        self.port = 0
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.connections: list[Connection] = []
        self.ended = asyncio.Event()  # a connection is no more

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


@asynccontextmanager
async def receiving(behave: Behaviour, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """A receiver that does this with each connection."""
    receiver = Receiver()
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer, receiver)
        receiver.connections.append(connection)
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await behave(connection)
        finally:
            receiver.ended.set()
            writer.transport.abort() if tls else writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls, backlog=500)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def answering(*answers: bytes) -> Behaviour:
    """Answers each request on a connection with the next of these, the last one again and again."""

    async def behave(connection: Connection) -> None:
        for number in range(1000):
            await connection.request()
            await connection.say(answers[min(number, len(answers) - 1)])

    return behave


@asynccontextmanager
async def posting(
    *,
    seconds: float = WAIT,
    lookup: Lookup | None = None,
    tls: ssl.SSLContext | None = None,
    idle: int = 1000,
) -> AsyncIterator[Client]:
    """A client as development has it, which may post to loopback."""
    names = NameResolver(allow_private=True, lookup=lookup) if lookup else None
    targets = Targets(allow_private=True, resolver=names)
    client = Client(targets, seconds=seconds, tls=tls, idle=idle)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(targets.close)
        stack.push_async_callback(client.close)
        yield client


async def post(client: Client, url: str, body: bytes = b"{}") -> Reply:
    async with asyncio.timeout(WAIT):
        return await client.post(url, [TYPE], body)


async def replies(
    behave: Behaviour, count: int = 1, *, seconds: float = WAIT
) -> tuple[list[Reply], Receiver]:
    """What so many posts, one after the other, to a receiver that behaves like this come to."""
    async with receiving(behave) as receiver, posting(seconds=seconds) as client:
        return [await post(client, receiver.url) for _ in range(count)], receiver


def taken(connection: socket.socket) -> int:
    """The bytes that can still be read from a connection before it ends."""
    connection.settimeout(WAIT)
    count = 0
    try:
        while piece := connection.recv(1024 * 1024):
            count += len(piece)
    except ConnectionResetError:
        pass
    return count
