"""Subscriptions against the real process: pushed once to each, from whichever process, and ended in good order."""

import asyncio
import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, aclosing, contextmanager, suppress
from typing import Any

import psutil
import pytest
from gql import Client, GraphQLRequest
from gql.transport.websockets import WebsocketsTransport
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.flows.process import Process, serving
from tests.graphql.sockets import frame, hear, say, upgrade
from tradepost.graphql.transport_ws import SUBPROTOCOL

WATCH = "subscription ($id: ID!) { orderStatusChanged(orderId: $id) { id status total } }"
STATUS = "query ($id: ID!) { order(id: $id) { status } }"
FULFIL = "mutation ($id: ID!) { fulfillOrder(id: $id) { status } }"
WAIT = 20.0


@pytest.fixture(scope="module")
def process(engine: str, new_database: Callable[[str], str]) -> Iterator[Process]:
    with serving(new_database(engine)) as running:
        yield running


def an_order(process: Process) -> str:
    """The id of a new order for one product."""
    marked = f"{time.monotonic_ns()}"
    user = process.call("POST", "/v1/users", {"name": "Ada", "email": f"{marked}@shop.example"})[1]
    product = {"sku": marked, "name": "Lantern", "price": 2.5, "currency": "GBP"}
    product = process.call("POST", "/v1/products", product)[1]
    lines = [{"productId": product["id"], "quantity": 2}]
    status, order = process.call("POST", "/v1/orders", {"userId": user["id"], "lineItems": lines})
    assert status == 201, order
    made: str = order["id"]
    return made


def fulfil(process: Process, order: str) -> None:
    status, answer = process.call("PATCH", f"/v1/orders/{order}", {"status": "FULFILLED"})
    assert status == 200, answer


@contextmanager
def talking(process: Process, key: str = "") -> Iterator[ClientConnection]:
    """A socket that was acknowledged."""
    address = f"ws://127.0.0.1:{process.port}/graphql"
    headers = {"Authorization": f"Bearer {key or process.key}"}
    spoken = [Subprotocol(SUBPROTOCOL)]
    with connect(address, subprotocols=spoken, additional_headers=headers, open_timeout=WAIT) as client:
        say(client, type="connection_init")
        assert hear(client) == {"type": "connection_ack"}
        yield client


def watch(client: ClientConnection, order: str) -> None:
    """Subscribes to an order under its id; on return that has begun.

    A subscription to an order that does not exist is refused once that was looked for, which begins after those
    before it have looked for theirs.
    """
    subscribe(client, order)
    subscribe(client, "none")
    refused = hear(client)
    assert (refused["type"], refused["id"]) == ("error", "none"), refused


def subscribe(client: ClientConnection, order: str) -> None:
    say(client, type="subscribe", id=order, payload={"query": WATCH, "variables": {"id": order}})


def pushed(client: ClientConnection, timeout: float = WAIT) -> str:
    """The id of the order that is pushed next, fulfilled."""
    message = json.loads(client.recv(timeout=timeout))
    assert message["type"] == "next", message
    told = message["payload"]["data"]["orderStatusChanged"]
    assert told == {"id": message["id"], "status": "FULFILLED", "total": 5.0}
    heard: str = told["id"]
    return heard


def close_code(client: ClientConnection) -> int:
    with pytest.raises(ConnectionClosed) as caught:  # noqa: PT012 (whichever message is the last)
        while True:
            client.recv(timeout=WAIT)
    assert caught.value.rcvd is not None
    return caught.value.rcvd.code


@pytest.mark.filterwarnings("ignore:connect")
def test_a_common_client_gets_on_with_it(process: Process) -> None:
    """The gql library queries, changes and subscribes over one socket, with its key in `connection_init`."""

    async def talk() -> list[Any]:
        transport = WebsocketsTransport(
            f"ws://127.0.0.1:{process.port}/graphql",
            subprotocols=[SUBPROTOCOL],
            init_payload={"authorization": f"Bearer {process.key}"},
        )
        async with asyncio.timeout(WAIT), Client(transport=transport) as session:
            for _ in range(20):  # until a change comes after the beginning of the subscription to it
                asked = {"id": an_order(process)}
                request = GraphQLRequest(WATCH, variable_values=asked)
                async with aclosing(session.subscribe(request)) as pushes:
                    push = asyncio.ensure_future(anext(pushes))
                    queried = await session.execute(GraphQLRequest(STATUS, variable_values=asked))
                    changed = await session.execute(GraphQLRequest(FULFIL, variable_values=asked))
                    with suppress(TimeoutError):
                        return [asked, queried, changed, await asyncio.wait_for(push, 1)]
        pytest.fail("nothing is pushed")

    asked, queried, changed, heard = asyncio.run(talk())
    assert queried["order"] == {"status": "PENDING"}
    assert changed["fulfillOrder"] == {"status": "FULFILLED"}
    assert heard["orderStatusChanged"] == {**asked, "status": "FULFILLED", "total": 5.0}


def test_a_change_is_pushed_once_to_each(process: Process) -> None:
    """Every socket that watches an order is told of its change once; those that watch another are not."""
    order, other = an_order(process), an_order(process)
    with ExitStack() as stack:
        clients = [stack.enter_context(talking(process)) for _ in range(5)]
        for client in clients[:4]:
            watch(client, order)
        watch(clients[4], other)
        fulfil(process, order)
        fulfil(process, other)
        for client in clients[:4]:
            assert pushed(client) == order
        assert pushed(clients[4]) == other
        for client in clients:
            say(client, type="ping")
            assert hear(client) == {"type": "pong"}


def test_a_change_in_one_process_is_pushed_by_all(engine: str, new_database: Callable[[str], str]) -> None:
    """Sockets to several processes over one store hear of a change, whichever of them made it."""
    database = new_database(engine)
    with serving(database) as one, serving(database) as two, talking(one) as near, talking(two) as far:
        order = an_order(one)
        watch(near, order)
        watch(far, order)
        fulfil(two, order)
        assert pushed(near) == pushed(far) == order


def test_a_revoked_key_ends_its_sockets(process: Process) -> None:
    """Within seconds of a key's revocation its sockets end with 4403."""
    made = process.call("POST", "/v1/api-keys", {"name": "short", "scopes": ["orders:read"]})[1]
    with talking(process, made["key"]) as client:
        subscribe(client, an_order(process))
        began = time.monotonic()
        assert process.call("DELETE", f"/v1/api-keys/{made['id']}")[0] == 204
        assert close_code(client) == 4403
        assert time.monotonic() - began < 10


def test_whoever_reads_nothing_costs_little(new_database: Callable[[str], str]) -> None:
    """Clients that ask for hundreds of megabytes and never read leave the process small, and others served."""
    with serving(new_database("sqlite")) as process, ExitStack() as stack:
        for n in range(20):
            product = {"sku": f"{n}", "name": "Lantern", "price": 2.5, "currency": "GBP"}
            process.call("POST", "/v1/products", product | {"description": "x" * 5000})
        payload = b'{"query":"{ products(first: 20) { description } }"}'
        before = psutil.Process(process.pid).memory_info().rss
        for _ in range(60):
            deaf = stack.enter_context(process.connect())
            deaf.sendall(upgrade(key=f"Bearer {process.key}"))
            assert deaf.recv(4096).startswith(b"HTTP/1.1 101 ")
            with suppress(ConnectionError):
                deaf.sendall(frame(b'{"type":"connection_init"}'))
                for n in range(100):
                    deaf.sendall(frame(b'{"type":"subscribe","id":"%d","payload":%b}' % (n, payload)))
        with talking(process) as client:
            order = an_order(process)
            watch(client, order)
            fulfil(process, order)
            assert pushed(client) == order
        assert psutil.Process(process.pid).memory_info().rss - before < 128 << 20


def test_sigterm_ends_a_hundred_sockets_in_time(engine: str, new_database: Callable[[str], str]) -> None:
    """At SIGTERM each socket is told 1012, so that its client reconnects, and the process is soon gone."""
    with serving(new_database(engine)) as process, ExitStack() as stack:
        order = an_order(process)
        clients = [stack.enter_context(talking(process)) for _ in range(100)]
        for client in clients:
            subscribe(client, order)
        watch(clients[0], an_order(process))
        deaf = stack.enter_context(process.connect())
        deaf.sendall(upgrade(key=f"Bearer {process.key}"))
        assert deaf.recv(4096).startswith(b"HTTP/1.1 101 ")
        began = time.monotonic()
        assert process.end(signal.SIGTERM) in (0, -signal.SIGTERM)
        assert time.monotonic() - began < 10
        assert {close_code(client) for client in clients} == {1012}
        assert not [line for line in process.errors if "error" in line.lower() or "Traceback" in line]
