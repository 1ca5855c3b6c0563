"""A shop with webhook endpoints in a database of its own, and what the questions about deliveries do to it.

The settings are those of development: targets on loopback, over http.
"""

import asyncio
import base64
import itertools
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
from sqlalchemy import text

from benchmarks.client import Client
from benchmarks.databases import Engine, scratch
from benchmarks.request import Request
from benchmarks.services import TRADEPOST, Size
from benchmarks.shop import look_around
from tradepost import assembly, settings
from tradepost.storage.database import Database, Writing
from tradepost.storage.statement import Statement

EVENT_TYPE = "product.updated"
_SIZE = Size(users=100, products=1_000, orders=1_000)
_LOOK_SECONDS = 0.02
_LIMIT = 120.0

DELIVERING = replace(
    TRADEPOST,
    settings={
        **TRADEPOST.settings,
        "TRADEPOST_WEBHOOK_ALLOW_PRIVATE": "1",
        "TRADEPOST_ENCRYPTION_KEY": base64.b64encode(bytes(range(32))).decode(),
    },
)
WITHOUT_DELIVERIES = replace(DELIVERING, settings={**DELIVERING.settings, "TRADEPOST_DELIVERIES": "0"})

_PENDING = Statement(
    "whether anything is pending",
    text("SELECT id FROM webhook_deliveries WHERE status = 'PENDING' LIMIT 1"),
)
_SWITCH = Statement("has all endpoints wait, or go on", text("UPDATE webhook_endpoints SET status = :status"))


@dataclass(frozen=True)
class WebhookShop:
    """`endpoints` are the ids of those registered; `past` a product whose change no endpoint was told of."""

    name: str
    engine: Engine
    database: str
    key: str
    products: list[str]
    past: str
    endpoints: list[str]
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def changes(self, count: int) -> list[Request]:
        """So many that each make an event, of one product after the other."""
        turns = zip(itertools.cycle(self.products), itertools.islice(self._numbers, count))
        return [change(product, f"Number {number}") for product, number in turns]

    async def hold(self) -> None:
        """What waits for the endpoints goes on waiting."""
        await self._switch("DISABLED")

    async def let_go(self) -> None:
        """What waits for the endpoints goes out, and all workers are told."""
        await self._switch("ENABLED")

    async def written_down(self) -> float:
        """When nothing is pending any more, as seen 50 times a second."""
        async with store(self.database) as opened, asyncio.timeout(_LIMIT):
            pending: object = True
            while pending:
                await asyncio.sleep(_LOOK_SECONDS)
                pending = await opened.reading().row(_PENDING)
        return time.perf_counter()

    async def _switch(self, status: str) -> None:
        async def work(tx: Writing) -> None:
            await tx.run(_SWITCH, status=status)

        async with store(self.database) as opened:
            await opened.write(work)
            opened.wake()


@contextmanager
def webhook_shop(engine: Engine, folder: Path, name: str, urls: Sequence[str]) -> Iterator[WebhookShop]:
    """Filled, with an endpoint at each URL that is told of changed products; nobody serves it."""
    with scratch(engine, folder) as database:
        WITHOUT_DELIVERIES.fill(database, _SIZE)
        key = WITHOUT_DELIVERIES.new_key(database)
        log = folder / f"{name}.log"
        with WITHOUT_DELIVERIES.serve(database, key, log) as server, Client(server.port, key) as client:
            past, *products = look_around(client).products
            client.send(change(past, "Past"))
            endpoints = [_register(client, url) for url in urls]
        yield WebhookShop(name, engine, database, key, products, past, endpoints)


@asynccontextmanager
async def store(database: str) -> AsyncIterator[Database]:
    """The database as the service opens it."""
    opened = assembly.database(settings.load({"TRADEPOST_DATABASE_URL": database}))
    await opened.start()
    try:
        yield opened
    finally:
        await opened.stop()


def _register(client: Client, url: str) -> str:
    body = msgspec.json.encode({"url": url, "eventTypes": [EVENT_TYPE]})
    answer = client.send(Request("POST", "/v1/webhook-endpoints", body))
    return str(msgspec.json.decode(answer.body)["id"])


def change(product: str, name: str) -> Request:
    return Request("PATCH", f"/v1/products/{product}", msgspec.json.encode({"name": name}))
