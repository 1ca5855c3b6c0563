"""Subscriptions to several processes, of several workers each, over one store."""

import http.client
import json
import signal
import socket
import statistics
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from typing import Any, NamedTuple

import psutil
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.flows.process import Process, serving
from tradepost.graphql.transport_ws import SUBPROTOCOL

WATCH = "subscription ($id: ID!) { orderStatusChanged(orderId: $id) { id status } }"
WAIT = 30.0
SOON = 0.25  # seconds; without a hint from the database it takes half a second, and up to one
ROUNDS = 4
CONNECTIONS = 8


class Worker(NamedTuple):
    """One worker of a process, as its clients have it: a socket to it, and a connection for requests."""

    process: Process
    socket: ClientConnection
    requests: http.client.HTTPConnection

    def call(self, method: str, path: str, body: Any) -> Any:
        status, found = self.process.call_on(self.requests, method, path, body)
        assert status < 300, found
        return found

    def orders(self, count: int) -> list[str]:
        """The ids of new orders."""
        unique = uuid.uuid4().hex
        user = self.call("POST", "/v1/users", {"name": "Ada", "email": f"{unique}@shop.example"})
        product = {"sku": unique, "name": "Lantern", "price": 2.5, "currency": "GBP"}
        product = self.call("POST", "/v1/products", product)
        order = {"userId": user["id"], "lineItems": [{"productId": product["id"], "quantity": 2}]}
        return [self.call("POST", "/v1/orders", order)["id"] for _ in range(count)]

    def fulfil(self, order: str) -> float:
        """Changes the status of an order; when that was answered."""
        self.call("PATCH", f"/v1/orders/{order}", {"status": "FULFILLED"})
        return time.monotonic()

    def watch(self, *orders: str) -> None:
        """Subscribes to orders under their ids; on return that has begun.

        A subscription to an order that does not exist is refused once that was looked for, which begins
        after those before it have looked for theirs.
        """
        for order in orders:
            self._subscribe(order, order)
            self._subscribe("late", "none")
            refused = self._hear()
            assert (refused["type"], refused["id"]) == ("error", "late"), refused

    def told(self, order: str) -> float:
        """Hears of the change of an order, and of nothing before it; when that was."""
        message = self._hear()
        now = time.monotonic()
        result = message.pop("payload")
        assert message == {"type": "next", "id": order}
        assert result["data"] == {"orderStatusChanged": {"id": order, "status": "FULFILLED"}}
        return now

    def has_heard_all(self) -> None:
        self._say(type="ping")
        assert self._hear() == {"type": "pong"}

    def close_code(self) -> int | None:
        with pytest.raises(ConnectionClosed) as caught:
            self.socket.recv(timeout=WAIT)
        return caught.value.rcvd.code if caught.value.rcvd else None

    def _subscribe(self, id_: str, order: str) -> None:
        self._say(type="subscribe", id=id_, payload={"query": WATCH, "variables": {"id": order}})

    def _say(self, **message: Any) -> None:
        self.socket.send(json.dumps(message))

    def _hear(self) -> Any:
        return json.loads(self.socket.recv(timeout=WAIT))


@contextmanager
def workers(process: Process, count: int) -> Iterator[list[Worker]]:
    """All the workers of a process."""
    with ExitStack() as life:
        yield [
            Worker(process, a_socket(process, one, life), requests(process, other, life))
            for one, other in connections(process, count, life)
        ]


def a_socket(process: Process, connected: socket.socket, life: ExitStack) -> ClientConnection:
    """A socket that was acknowledged."""
    address = f"ws://127.0.0.1:{process.port}/graphql"
    client = life.enter_context(connect(address, sock=connected, subprotocols=[Subprotocol(SUBPROTOCOL)]))
    payload = {"authorization": f"Bearer {process.key}"}
    client.send(json.dumps({"type": "connection_init", "payload": payload}))
    assert json.loads(client.recv(timeout=WAIT)) == {"type": "connection_ack"}
    return client


def requests(process: Process, connected: socket.socket, life: ExitStack) -> http.client.HTTPConnection:
    """A connection that was used: one on which nothing is asked is closed as too slow before the others are there."""
    connection = http.client.HTTPConnection("127.0.0.1")
    connection.sock = connected
    life.callback(connection.close)
    assert process.call_on(connection, "GET", "/v1/users?limit=1")[0] == HTTPStatus.OK
    return connection


def connections(process: Process, count: int, life: ExitStack) -> list[list[socket.socket]]:
    """Two connections to each worker: which one accepts is the kernel's choice, so that takes some."""
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        with ExitStack() as tried:
            opened = [tried.enter_context(process.connect()) for _ in range(CONNECTIONS)]
            by_worker = defaultdict(list)
            for each, pid in accepted(process, opened):
                by_worker[pid].append(each)
            if [len(each) > 1 for each in by_worker.values()] == [True] * count:
                life.push(tried.pop_all())
                return [each[:2] for each in by_worker.values()]
    pytest.fail("not all workers accept connections")


def accepted(process: Process, opened: list[socket.socket]) -> Iterator[tuple[socket.socket, int]]:
    """Connections and the pids of those who accepted them."""
    ours = {each.getsockname()[1]: each for each in opened}
    for child in psutil.Process(process.pid).children(recursive=True):
        for connection in child.net_connections("tcp"):
            if connection.raddr and connection.raddr.port in ours:
                yield ours[connection.raddr.port], child.pid


def test_every_worker_tells_of_a_change_soon_and_once(
    engine: str, new_database: Callable[[str], str]
) -> None:
    """Whichever worker of whichever process changes an order, every worker tells of it, once and in a quarter second.

    When a process ends, its sockets are told 1012; those of the other are told of changes as before.
    """
    database = new_database(engine)
    with (
        serving(database, "--workers", "2") as one,
        serving(database, "--workers", "2") as two,
        workers(one, 2) as near,
        workers(two, 2) as far,
    ):
        everyone = [*near, *far]
        *orders, last = near[0].orders(len(everyone) * ROUNDS + 1)
        for worker in everyone:
            worker.watch(*orders, last)
        delays = defaultdict(list)
        for changer, order in zip(everyone * ROUNDS, orders, strict=True):
            changed = changer.fulfil(order)
            for worker in everyone:
                delays[changer, worker].append(worker.told(order) - changed)
        assert max(map(statistics.median, delays.values())) < SOON
        two.end(signal.SIGTERM)
        assert [worker.close_code() for worker in far] == [1012, 1012]
        near[0].fulfil(last)
        for worker in near:
            worker.told(last)
            worker.has_heard_all()
