"""What do subscribers cost: the memory of a thousand that wait, and how soon a change of status reaches all.

Asked again beside a client that asks for much and reads nothing.
"""

import asyncio
import os
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import cast

import msgspec
import uvloop

from benchmarks import cores
from benchmarks.databases import Engine, scratch
from benchmarks.services import TRADEPOST, OpenService, Size, opened
from benchmarks.table import Row, aligned, verdict

SUBSCRIBERS = 1_000
_MEGABYTES = 40
_MILLISECONDS = 250

_SIZE = Size(users=100, products=1_000, orders=1_000)
_AT_ONCE = 50  # upgrades under way together
_SETTLED = 1.5  # seconds after which every subscription has begun, and every hint has been looked at
_LIMIT = 30.0
_WATCH = "subscription ($id: ID!) { orderStatusChanged(orderId: $id) { id status total } }"
_MUCH = "{ products(first: 200) { id sku name description price currency stock status } }"
_PUSHED = b'"orderStatusChanged"'
_PING = b"\x89\x04"  # the beginning of a ping of four bytes, and of nothing else that is sent
_HEADINGS: Row = ("subscribers", "KB each", "first ms", "last ms", "CPU ms", "last ms beside a deaf one")


@dataclass(frozen=True)
class Reach:
    """Seconds from the request for a change until the first and the last knew, and of the server's CPU."""

    first: float
    last: float
    cpu: float


@dataclass(frozen=True)
class Cost:
    """What came of it: bytes for all of them, and how each change reached them."""

    resident: int
    alone: list[Reach]
    beside_deaf: list[Reach]


class Subscriber(asyncio.Protocol):
    """A client as cheap as it can be: it looks for what it waits for and reads no more than that."""

    def __init__(self) -> None:
        self._awaited = b""
        self._came: asyncio.Future[float] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._came is not None and not self._came.done():
            self._came.set_exception(RuntimeError(f"a socket was closed: {exc}"))

    def data_received(self, data: bytes) -> None:
        if self._came is not None and not self._came.done() and self._awaited in data:
            self._came.set_result(perf_counter())
        ping = data.find(_PING)
        if ping >= 0:
            self.transport.write(_frame(data[ping + 2 : ping + 6], 0x8A))

    def when(self, awaited: bytes) -> "asyncio.Future[float]":
        """Resolves when this comes, with the time."""
        self._awaited = awaited
        self._came = asyncio.get_running_loop().create_future()
        return self._came

    async def introduce(self, port: int, key: str) -> None:
        came = self.when(b"\r\n\r\n")
        self.transport.write(_upgrade(port, key))
        await came
        came = self.when(b'"connection_ack"')
        self.say({"type": "connection_init"})
        await came

    def watch(self, order: str) -> None:
        self.say(_subscribe(order, _WATCH, {"id": order}))

    def say(self, message: object) -> None:
        self.transport.write(_frame(msgspec.json.encode(message)))


def measure(engine: Engine, folder: Path, rounds: int) -> Cost:
    """What it costs with a database and a server of its own."""
    with scratch(engine, folder) as database, opened(TRADEPOST, database, _SIZE, folder) as service:
        return uvloop.run(_measure(service, rounds))


def lines(engine: Engine, cost: Cost) -> Iterator[str]:
    yield f"subscribers ({engine}): {SUBSCRIBERS:,} that wait for one order, and a change of its status"
    each = f"{cost.resident / SUBSCRIBERS / 1024:.1f}"
    of_each = zip(*[(reach.first, reach.last, reach.cpu) for reach in cost.alone], strict=True)
    figures = [_milliseconds(seconds) for seconds in of_each]
    beside = _milliseconds(reach.last for reach in cost.beside_deaf)
    shown = [f"{figure:.0f}" for figure in (*figures, beside)]
    yield from aligned([_HEADINGS, (f"{SUBSCRIBERS:,}", each, *shown)])
    megabytes = cost.resident / 1e6
    met = verdict(met=megabytes < _MEGABYTES)
    yield f"  they take {megabytes:.1f} MB of the server (bar < {_MEGABYTES} MB): {met}"
    slowest = max(figures[1], beside)
    met = verdict(met=slowest < _MILLISECONDS)
    yield f"  all know after {slowest:.0f} ms (bar < {_MILLISECONDS} ms): {met}"


def _milliseconds(seconds: Iterable[float]) -> float:
    return median(seconds) * 1000


async def _measure(service: OpenService, rounds: int) -> Cost:
    orders = iter(_pending(service, 2 * rounds + 1))
    # The first sockets are served from memory that is taken once.
    for early in await _open(service, _AT_ONCE):
        early.transport.close()
    await asyncio.sleep(_SETTLED)
    before = cores.resident_bytes(service.server.pid)
    subscribers = await _open(service, SUBSCRIBERS)
    order = next(orders)
    for each in subscribers:
        each.watch(order)
    await asyncio.sleep(_SETTLED)
    resident = cores.resident_bytes(service.server.pid) - before
    alone = [await _reach(service, subscribers, next(orders)) for _ in range(rounds)]
    with _deaf(service):
        beside = [await _reach(service, subscribers, next(orders)) for _ in range(rounds)]
    for each in subscribers:
        each.transport.close()
    return Cost(resident, alone, beside)


async def _reach(service: OpenService, subscribers: list[Subscriber], order: str) -> Reach:
    for each in subscribers:
        each.watch(order)
    await asyncio.sleep(_SETTLED)
    came = [each.when(_PUSHED) for each in subscribers]
    began, cpu = perf_counter(), cores.cpu_seconds(service.server.pid)
    await asyncio.to_thread(_fulfil, service, order)
    async with asyncio.timeout(_LIMIT):
        heard = await asyncio.gather(*came)
    cpu = cores.cpu_seconds(service.server.pid) - cpu
    return Reach(min(heard) - began, max(heard) - began, cpu)


def _fulfil(service: OpenService, order: str) -> None:
    with service.client() as client:
        client.patch(f"/v1/orders/{order}", {"status": "FULFILLED"})


def _pending(service: OpenService, count: int) -> list[str]:
    with service.client() as client:
        page = client.get("/v1/orders?status=PENDING&limit=200&fields=id")
    return [item["id"] for item in islice(page["items"], count)]


async def _open(service: OpenService, count: int) -> list[Subscriber]:
    loop = asyncio.get_running_loop()
    port = service.server.port
    opened_: list[Subscriber] = []
    while len(opened_) < count:
        made = [loop.create_connection(Subscriber, "127.0.0.1", port) for _ in range(_AT_ONCE)]
        new = [subscriber for _, subscriber in await asyncio.gather(*made)]
        await asyncio.gather(*[each.introduce(port, service.key) for each in new])
        opened_ += new
    return opened_


def _deaf(service: OpenService) -> socket.socket:
    """A client that asks for megabytes and reads none of them."""
    connection = socket.create_connection(("127.0.0.1", service.server.port))
    connection.sendall(_upgrade(service.server.port, service.key))
    connection.sendall(_frame(b'{"type":"connection_init"}'))
    for number in range(100):
        connection.sendall(_frame(msgspec.json.encode(_subscribe(str(number), _MUCH, {}))))
    return connection


def _subscribe(id_: str, query: str, variables: object) -> dict[str, object]:
    return {"type": "subscribe", "id": id_, "payload": {"query": query, "variables": variables}}


def _upgrade(port: int, key: str) -> bytes:
    head = (
        "GET /graphql HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol: graphql-transport-ws",
        f"Authorization: Bearer {key}",
        "",
        "",
    )
    return "\r\n".join(head).encode()


def _frame(data: bytes, first: int = 0x81) -> bytes:
    """A masked frame (RFC 6455, 5.2), of text unless its first byte says otherwise."""
    mask = os.urandom(4)
    repeated = (mask * (len(data) // 4 + 1))[: len(data)]
    masked = int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")
    short = len(data) < 126
    length = bytes([0x80 | len(data)]) if short else b"\xfe" + len(data).to_bytes(2, "big")
    return bytes([first]) + length + mask + masked.to_bytes(len(data), "big")
