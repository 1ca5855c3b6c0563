"""Sockets under test: our server in a thread, with operations that do what a test needs, and clients to it."""

import asyncio
import json
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Queue
from typing import Any

import uvicorn
from websockets.sync.client import ClientConnection, connect

from tradepost import server
from tradepost.access.caller import Caller
from tradepost.assembly import assemble
from tradepost.graphql.errors import GRAPHQL_VALIDATION_FAILED, refusal
from tradepost.graphql.request import GraphQLRequest
from tradepost.graphql.sockets import Sockets
from tradepost.graphql.transport_ws import SUBPROTOCOL
from tradepost.http.request import Request
from tradepost.problems import Problem, Unauthenticated
from tradepost.settings import load

WAIT = 20.0  # seconds after which what has not come will not come
KEY = "Bearer tp_one"
OTHER_KEY = "Bearer tp_other"

Push = Callable[[bytes], Awaitable[None]]


class Told:
    """Operations by the name that is given as the query; `begun` and `ended` say what became of each."""

    def __init__(self) -> None:
        self.keys = {KEY.encode(), OTHER_KEY.encode()}
        self.trouble: Problem | None = None  # what asking for a caller meets
        self.begun: Queue[str] = Queue()
        self.ended: Queue[str] = Queue()
        self._watching: list[asyncio.Queue[bytes]] = []

    async def caller(self, authorization: bytes | None) -> Caller:
        if self.trouble is not None:
            raise self.trouble
        if authorization not in self.keys:
            raise Unauthenticated("The API key is unknown", challenge="Bearer")
        return Caller(key_id=authorization.decode(), scopes=frozenset())

    async def run(self, caller: Caller, request: GraphQLRequest, upgrade: Request, push: Push) -> None:
        name = request.query or ""
        self.begun.put(name)
        end = "cancelled"
        try:
            await getattr(self, name)(request.variables or {}, push)
            end = "done"
        finally:
            self.ended.put(f"{name} {end}")

    async def echo(self, variables: dict[str, Any], push: Push) -> None:
        await push(json.dumps({"data": variables}).encode())

    async def refused(self, variables: dict[str, Any], push: Push) -> None:
        raise refusal(GRAPHQL_VALIDATION_FAILED, "There is no such field")

    async def broken(self, variables: dict[str, Any], push: Push) -> None:
        raise ZeroDivisionError("a secret")

    async def wait(self, variables: dict[str, Any], push: Push) -> None:
        await asyncio.get_running_loop().create_future()

    async def stubborn(self, variables: dict[str, Any], push: Push) -> None:
        with suppress(asyncio.CancelledError):
            await self.wait(variables, push)
        await push(b'{"data":"too late"}')

    async def many(self, variables: dict[str, Any], push: Push) -> None:
        payload = json.dumps({"data": "x" * variables["bytes"]}).encode()
        for _ in range(variables["times"]):
            await push(payload)

    async def watch(self, variables: dict[str, Any], push: Push) -> None:
        news: asyncio.Queue[bytes] = asyncio.Queue()
        self._watching.append(news)
        while True:
            await push(await news.get())

    def announce(self, payload: bytes) -> None:
        """Pushes to everyone who watches; to be called on the server's loop."""
        for news in self._watching:
            news.put_nowait(payload)


class Served:
    """A server on a port of its own."""

    def __init__(self, database_url: str, **options: Any) -> None:
        found = load({}, database_url=database_url)
        self.told = Told()
        self.app = assemble(found)
        self.sockets = self.app.sockets = Sockets(self.told, self.app.metrics, **options)
        self.lines: Queue[bytes] = Queue()
        self.app.log._write = self.lines.put
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._server = uvicorn.Server(server.configuration(found, lambda: self.app))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            self.loop = runner.get_loop()
            runner.run(self._server.serve(sockets=[self._listening]))

    def begin_to_stop(self) -> None:
        self._server.should_exit = True

    def stop(self) -> None:
        self.begin_to_stop()
        self._thread.join(WAIT)
        assert not self._thread.is_alive()

    def announce(self, payload: bytes) -> None:
        self.loop.call_soon_threadsafe(self.told.announce, payload)

    def open(self, key: str | None = KEY, **options: Any) -> ClientConnection:
        """A socket; options as `websockets` takes them."""
        given = {} if key is None else {"Authorization": key}
        options = {"subprotocols": [SUBPROTOCOL], "additional_headers": given, **options}
        path = options.pop("path", "/graphql")
        address = f"ws://127.0.0.1:{self.port}{path}"
        client: ClientConnection = connect(address, compression=None, open_timeout=WAIT, **options)
        return client

    @contextmanager
    def talking(self, key: str = KEY) -> Iterator[ClientConnection]:
        """A socket that was acknowledged."""
        with self.open(key) as client:
            say(client, type="connection_init")
            assert hear(client) == {"type": "connection_ack"}
            yield client

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=WAIT)

    def unread(self, *messages: bytes) -> socket.socket:
        """An acknowledged socket whose client sends these and reads no more."""
        open_ = socket.socket()
        open_.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        open_.settimeout(WAIT)
        open_.connect(("127.0.0.1", self.port))
        open_.sendall(upgrade())
        assert open_.recv(4096).startswith(b"HTTP/1.1 101 ")
        open_.sendall(frame(b'{"type":"connection_init"}'))
        assert open_.recv(4096).endswith(b'"connection_ack"}')
        for message in messages:
            open_.sendall(frame(message))
        return open_


def say(client: ClientConnection, **message: Any) -> None:
    client.send(json.dumps(message))


def subscribe(client: ClientConnection, id_: str, query: str, **variables: Any) -> None:
    say(client, type="subscribe", id=id_, payload={"query": query, "variables": variables})


def hear(client: ClientConnection) -> Any:
    return json.loads(client.recv(timeout=WAIT))


def upgrade(*lines: str, key: str = KEY) -> bytes:
    """The head of a request for a socket."""
    head = [
        "GET /graphql HTTP/1.1",
        "Host: shop.example",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        f"Sec-WebSocket-Protocol: {SUBPROTOCOL}",
        f"Authorization: {key}",
        *lines,
    ]
    return "\r\n".join([*head, "", ""]).encode()


def frame(data: bytes, first: int = 0x81) -> bytes:
    """A masked frame (RFC 6455, 5.2); `first` is its first byte, text and final unless told."""
    mask = os.urandom(4)
    if len(data) < 126:
        length = bytes([0x80 | len(data)])
    elif len(data) < 1 << 16:
        length = b"\xfe" + len(data).to_bytes(2, "big")
    else:
        length = b"\xff" + len(data).to_bytes(8, "big")
    masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
    return bytes([first]) + length + mask + masked


def read_close(open_: socket.socket) -> int | None:
    """Reads to the end; the code of the close frame it ended with, or None if there was none."""
    received = b""
    with suppress(ConnectionResetError):
        while chunk := open_.recv(65536):
            received += chunk
    return int.from_bytes(received[2:4], "big") if received[:1] == b"\x88" else None
