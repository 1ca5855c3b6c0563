"""The real process and clients that others wrote: gql, and in Node graphql-ws and Apollo's."""

import asyncio
import json
import random
import signal
import socket
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Queue
from typing import Any

import pytest
from gql import Client, GraphQLRequest
from gql.transport.exceptions import TransportQueryError
from gql.transport.websockets import WebsocketsTransport
from graphql import build_schema, print_schema

from tests.flows import node
from tests.flows.process import Process, serving
from tradepost.graphql.schema import schema_text
from tradepost.graphql.transport_ws import SUBPROTOCOL

WATCH = "subscription ($id: ID!) { orderStatusChanged(orderId: $id) { id status } }"
STATUS = "query ($id: ID!) { order(id: $id) { status } }"
FULFIL = "mutation ($id: ID!) { fulfillOrder(id: $id) { status } }"
WAIT = 20.0


@pytest.fixture(scope="module")
def process(new_database: Callable[[str], str]) -> Iterator[Process]:
    with serving(new_database("sqlite")) as running:
        yield running


def an_order(process: Process) -> str:
    """The id of a new order."""
    unique = uuid.uuid4().hex
    user = made(process, "/v1/users", {"name": "Ada", "email": f"{unique}@shop.example"})
    product = made(
        process, "/v1/products", {"sku": unique, "name": "Lantern", "price": 2.5, "currency": "GBP"}
    )
    lines = [{"productId": product["id"], "quantity": 2}]
    order = made(process, "/v1/orders", {"userId": user["id"], "lineItems": lines})
    return str(order["id"])


def made(process: Process, path: str, body: Any) -> Any:
    status, found = process.call("POST", path, body)
    assert status == 201, found
    return found


def change(process: Process, order: str, status: str) -> None:
    answered, found = process.call("PATCH", f"/v1/orders/{order}", {"status": status})
    assert answered == 200, found


class GraphqlWs:
    """The client graphql-ws in a process of its own, by what it reports."""

    def __init__(self, child: "subprocess.Popen[str]") -> None:
        self._child = child
        self._reports: Queue[Any] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._reports.put(json.loads(line))

    def subscribe(self, id_: str, query: str, **variables: Any) -> None:
        self._tell(id=id_, query=query, variables=variables)

    def leave(self, id_: str) -> None:
        self._tell(id=id_)

    def _tell(self, **message: Any) -> None:
        assert self._child.stdin is not None
        print(json.dumps(message), file=self._child.stdin, flush=True)

    def hear(self, *, but: str = "pong") -> Any:
        """The next report that is not one of these."""
        while (report := self._reports.get(timeout=WAIT))["event"] == but:
            pass
        return report

    def ask(self, id_: str, query: str, **variables: Any) -> Any:
        """The data of an operation that has one result."""
        self.subscribe(id_, query, **variables)
        report = self.hear()
        assert (report["event"], report["id"]) == ("next", id_), report
        assert self.hear() == {"event": "complete", "id": id_}
        return report["result"]["data"]

    def watch(self, order: str) -> None:
        """Subscribes to an order under its id; on return that has begun."""
        self.subscribe(order, WATCH, id=order)
        self.catch_up()

    def catch_up(self) -> None:
        """Waits until all that was subscribed to before has begun: until a later subscription is refused."""
        self.subscribe("late", WATCH, id="none")
        report = self.hear()
        assert (report["event"], report["id"]) == ("error", "late"), report
        assert [error["extensions"]["code"] for error in report["errors"]] == ["NOT_FOUND"]


def pushed(order: str, status: str) -> Any:
    """What a client reports of a push, less what it cost."""
    return {"event": "next", "id": order, "data": {"orderStatusChanged": {"id": order, "status": status}}}


def without_cost(report: Any) -> Any:
    result = report.pop("result")
    return {**report, "data": result["data"], **({"errors": result["errors"]} if "errors" in result else {})}


@contextmanager
def graphql_ws(process: Process) -> Iterator[GraphqlWs]:
    """The client, disposed of with the block."""
    with node.start("socket.mjs", f"ws://127.0.0.1:{process.port}/graphql", process.key) as child:
        try:
            yield GraphqlWs(child)
            child.communicate(timeout=WAIT)
            assert child.returncode == 0
        finally:
            child.kill()


def test_graphql_ws_asks_changes_and_is_told(process: Process) -> None:
    """Over one socket graphql-ws queries, mutates and watches; what REST changes is pushed until it leaves."""
    left, watched, changed = an_order(process), an_order(process), an_order(process)
    with graphql_ws(process) as client:
        client.subscribe(watched, WATCH, id=watched)
        assert client.hear() == {"event": "connected"}
        client.watch(left)
        assert client.ask("query", STATUS, id=changed) == {"order": {"status": "PENDING"}}
        assert client.ask("mutation", FULFIL, id=changed) == {"fulfillOrder": {"status": "FULFILLED"}}
        client.leave(left)
        assert client.hear() == {"event": "complete", "id": left}
        assert client.ask("query", STATUS, id=left) == {"order": {"status": "PENDING"}}
        change(process, left, "FULFILLED")
        change(process, watched, "CANCELLED")
        assert without_cost(client.hear()) == pushed(watched, "CANCELLED")
        assert client.hear(but="")["event"] == "pong"


def test_graphql_ws_comes_back_after_a_restart(new_database: Callable[[str], str]) -> None:
    """At SIGTERM graphql-ws is told 1012; once the service is back it resubscribes, and is told of changes once."""
    database, port = new_database("sqlite"), a_port()
    with serving(database, port=port) as first, graphql_ws(first) as client:
        order, other = an_order(first), an_order(first)
        client.subscribe(order, WATCH, id=order)
        assert client.hear() == {"event": "connected"}
        client.watch(other)
        first.end(signal.SIGTERM)
        assert client.hear() == {"event": "closed", "code": 1012}
        with serving(database, port=port) as second:
            assert client.hear(but="closed") == {"event": "connected"}
            client.catch_up()
            change(second, order, "FULFILLED")
            assert without_cost(client.hear()) == pushed(order, "FULFILLED")
            change(second, other, "CANCELLED")
            assert without_cost(client.hear()) == pushed(other, "CANCELLED")
            client.leave(order)
            client.leave(other)
            assert client.hear() == {"event": "complete", "id": order}
            assert client.hear() == {"event": "complete", "id": other}


def a_port() -> int:
    """A free port of those that no client is given: whoever tries one of these in vain may get it himself."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def test_gql_reads_the_schema_and_is_told(process: Process) -> None:
    """Over one socket gql introspects, keeps it alive, queries, mutates and watches; what it has left it is not told."""
    watched, left = an_order(process), an_order(process)

    async def talk() -> None:
        transport = WebsocketsTransport(
            f"ws://127.0.0.1:{process.port}/graphql",
            subprotocols=[SUBPROTOCOL],
            init_payload={"authorization": f"Bearer {process.key}"},
            ping_interval=0.05,
            pong_timeout=WAIT,
        )
        whole = {"schema_description": True, "specified_by_url": True}
        client = Client(transport=transport, fetch_schema_from_transport=True, introspection_args=whole)
        async with asyncio.timeout(WAIT), client as session:
            assert client.schema is not None
            assert print_schema(client.schema) == print_schema(build_schema(schema_text()))
            await transport.pong_received.wait()
            told: asyncio.Queue[Any] = asyncio.Queue()

            async def watch(order: str) -> None:
                async for push in session.subscribe(request(WATCH, order)):
                    told.put_nowait(push)

            staying, leaving, refused = [asyncio.create_task(watch(each)) for each in (watched, left, "none")]
            with pytest.raises(TransportQueryError, match="NOT_FOUND"):
                await refused
            assert await session.execute(request(STATUS, left)) == {"order": {"status": "PENDING"}}
            leaving.cancel()
            await asyncio.wait([leaving])
            assert await session.execute(request(FULFIL, left)) == {"fulfillOrder": {"status": "FULFILLED"}}
            await asyncio.to_thread(change, process, watched, "CANCELLED")
            assert await told.get() == {"orderStatusChanged": {"id": watched, "status": "CANCELLED"}}
            staying.cancel()
            await asyncio.wait([staying])

    asyncio.run(talk())


def request(text: str, order: str) -> GraphQLRequest:
    return GraphQLRequest(text, variable_values={"id": order})


def test_apollo_sends_a_document_once(process: Process) -> None:
    """Apollo's client asks by hash, sends a document that is not known, and from then on its hash alone."""
    address = f"http://127.0.0.1:{process.port}/graphql"
    found = node.output("persisted.mjs", address, process.key, an_order(process))
    order = {"order": {"status": "PENDING", "__typename": "Order"}}
    priced = {"order": {"status": "PENDING", "total": 5, "__typename": "Order"}}
    cancelled = {"cancelOrder": {"status": "CANCELLED", "__typename": "Order"}}
    assert found["answers"] == [order, order, priced, priced, cancelled]
    unknown = ["PersistedQueryNotFound"]
    assert found["requests"] == [
        asked("POST", errors=unknown),
        asked("POST", query=True),
        asked("POST"),
        asked("GET", errors=unknown),
        asked("POST", query=True),
        asked("GET"),
        asked("POST", errors=unknown),
        asked("POST", query=True),
    ]


def asked(method: str, *, query: bool = False, **members: Any) -> Any:
    """A request of Apollo's client: by the hash of a document, with or without the document."""
    return {"method": method, "query": query, "hash": True, "status": 200, **members}
