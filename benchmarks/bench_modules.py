"""How many modules does a request enter: those of tradepost, with the calls in them and how deep they go.

Counted with `sys.setprofile` on SQLite, from the ASGI interface down, on the thread of the event loop. Each
walk has been taken once before, so that everything is loaded and cached. Then it is counted a few times, and
the count with the fewest calls is shown, because background tasks only add calls.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import tradepost
from benchmarks.bench_graphql_http import TREE
from benchmarks.databases import Engine, scratch
from benchmarks.in_process import Caller, running
from benchmarks.request import Request
from benchmarks.shop import Shop
from benchmarks.table import Row, aligned
from benchmarks.webhook_sink import Noted, Receiver
from tradepost import assembly
from tradepost.asgi import Application
from tradepost.settings import Settings

MODULES = "modules"
PLACING = "POST /v1/orders"
READING = "GET /v1/orders/{id}"
PAGE = "GET /v1/orders"
GRAPHQL = "POST /graphql, a tree"
ATTEMPT = "webhook attempt"

_SOURCE = f"{Path(tradepost.__file__).parent}/"
_TIMES = 5
_HEADINGS: Row = ("walk", "modules", "calls", "depth")


@dataclass
class Entered:
    """Modules in the order of their first call; `depth` counts the frames of tradepost on the stack."""

    modules: list[str] = field(default_factory=list)
    calls: int = 0
    depth: int = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """A profile function; a coroutine that goes on counts as a call again."""
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(_SOURCE):
            return
        self.calls += 1
        self.depth = max(self.depth, _depth(frame))
        module = name.removeprefix(_SOURCE)
        if module not in self.modules:
            self.modules.append(module)


def lines(folder: Path) -> Iterator[str]:
    with scratch(Engine.SQLITE, folder) as database:
        walks = asyncio.run(_walked_alone(database))
    yield "modules (sqlite): the modules of tradepost that a request enters"
    figures = [(walk, f"{len(e.modules)}", f"{e.calls}", f"{e.depth}") for walk, e in walks.items()]
    yield from aligned([_HEADINGS, *figures])
    for walk, entered in walks.items():
        yield f"  {walk}: {', '.join(entered.modules)}"


async def _walked_alone(database: str) -> dict[str, Entered]:
    async with running(database) as (application, found, key):
        return await walked(application, found, key)


async def walked(application: Application, found: Settings, key: str) -> dict[str, Entered]:
    """What each walk enters of a running application, by the walk's name.

    The application leaves deliveries to others and may deliver to loopback; `key` is an administrator's.
    """
    caller = Caller(application, key)
    user = await caller.made("/v1/users", {"name": "Ada", "email": "ada@shop.example"})
    lamp = {"sku": "lamp", "name": "Lamp", "price": 2, "currency": "GBP", "stock": 99}
    product = await caller.made("/v1/products", lamp)
    order = {"userId": user, "lineItems": [{"productId": product, "quantity": 1}]}
    placed = await caller.made("/v1/orders", order)
    shop = Shop([user], [product], [placed], [])
    [tree] = TREE.requests(shop)
    return {
        PLACING: await _entered(lambda: caller.made("/v1/orders", order)),
        READING: await _entered(lambda: caller.ask(Request("GET", f"/v1/orders/{placed}"))),
        PAGE: await _entered(lambda: caller.ask(Request("GET", "/v1/orders?limit=1"))),
        GRAPHQL: await _entered(lambda: caller.ask(tree)),
        ATTEMPT: await _attempt(application, found, caller),
    }


async def _attempt(application: Application, found: Settings, caller: Caller) -> Entered:
    """A worker claims and sends a ping in one turn, and records the result in the next."""
    deliveries = assembly.Deliveries(found, application.rest.performer, application.metrics)
    worker = deliveries.worker
    sink = await asyncio.get_running_loop().create_server(lambda: Receiver(Noted()), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{sink.sockets[0].getsockname()[1]}/"
    endpoint = await caller.made("/v1/webhook-endpoints", {"url": url})

    async def deliver() -> None:
        await worker.turn()
        await worker.settle()
        await worker.turn()

    async def once() -> Entered:
        await caller.made("/v1/webhook-deliveries", {"endpointId": endpoint})
        return await _counted(deliver)

    entered = _least([await once() for _ in range(_TIMES)])
    await deliveries.stop()
    sink.close()
    return entered


async def _entered(walk: Callable[[], Awaitable[object]]) -> Entered:
    await walk()
    return _least([await _counted(walk) for _ in range(_TIMES)])


def _least(entered: Sequence[Entered]) -> Entered:
    return min(entered, key=lambda each: each.calls)


async def _counted(walk: Callable[[], Awaitable[object]]) -> Entered:
    entered = Entered()
    sys.setprofile(entered)
    try:
        await walk()
    finally:
        sys.setprofile(None)
    return entered


def _depth(frame: FrameType | None) -> int:
    depth = 0
    while frame:
        depth += frame.f_code.co_filename.startswith(_SOURCE)
        frame = frame.f_back
    return depth
