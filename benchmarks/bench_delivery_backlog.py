"""Does a dead endpoint's backlog cost others anything: as many as a million deliveries wait for one of ten.

The endpoint hangs, or refuses connections and is tried as fast as that goes. Asked of the nine others is how
soon events reach them, and of the database what the two statements take that a worker claims with.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter

import uvloop
from sqlalchemy import text

from benchmarks.bench_delivery_latency import HEADINGS, WELL, milliseconds, row
from benchmarks.databases import Engine, vacuum
from benchmarks.table import Row, aligned, verdict
from benchmarks.webhook_delays import Delay, observe
from benchmarks.webhook_shop import WebhookShop, store, webhook_shop
from benchmarks.webhook_sink import HANGING, Sink, sinking
from tradepost.clock import Clock, instant
from tradepost.domain.ids import Ids
from tradepost.events.outbox import delivery
from tradepost.storage.database import Database, Writing
from tradepost.storage.statement import Statement
from tradepost.storage.statements.webhook_deliveries import CANDIDATES, LANES, QUEUE

BACKLOG = "delivery-backlog"
SIZE = 100_000
FULL_SIZE = 1_000_000

_EVENTS = 20  # a second
_SECONDS = 16.0  # a worker counts what waits every 15 s
_AT_LEAST = 20  # that wait for each endpoint at first, so that there is something to claim
_PAST = 2_000  # that each endpoint has got: the planner knows a table in which nothing waits
_PIECE = 10_000
_TIMES = 100
_LIMIT = 10.0  # seconds for all of them
_NOISE, _NOISE_MS = 1.25, 2.0
_HEADINGS: Row = (*HEADINGS, "LANES", "CANDIDATES")

_PAST_EVENT = Statement(
    "the last event of a product",
    text("SELECT id, type FROM events WHERE subject = :subject ORDER BY id DESC LIMIT 1"),
)
_FINISH = Statement(
    "concludes everything",
    text("UPDATE webhook_deliveries SET status = 'DELIVERED', next_attempt_at = NULL, later = 1"),
)


@dataclass(frozen=True)
class Claim:
    """What the statements take, in milliseconds."""

    lanes: float
    candidates: float


@dataclass(frozen=True)
class Scene:
    """A dead endpoint and so many deliveries that wait for it, and what came of that in each round."""

    name: str
    shop: WebhookShop
    claim: Claim
    rounds: list[list[Delay]] = field(default_factory=list)


def measure(engine: Engine, folder: Path, size: int, rounds: int) -> list[Scene]:
    """The first scene is that without a backlog; all take a turn in each round."""
    with ExitStack() as stack:
        sink = stack.enter_context(sinking(folder))
        hanging, refusing = sink.url(HANGING), _refusing(stack)
        scenes = [
            _scene(stack, engine, folder, sink, "one hangs", hanging, _AT_LEAST),
            _scene(stack, engine, folder, sink, f"one hangs, {size:,} wait", hanging, size),
            _scene(stack, engine, folder, sink, f"one refuses, {size:,} wait", refusing, size),
        ]
        for _ in range(rounds):
            for scene in scenes:
                scene.rounds.append(observe(scene.shop, sink, WELL, _EVENTS, _SECONDS, folder))
    return scenes


def lines(engine: Engine, scenes: list[Scene]) -> Iterator[str]:
    yield f"delivery-backlog ({engine}): {_EVENTS} changes a second, each to nine endpoints beside a dead one"
    yield from aligned([_HEADINGS, *map(_row, scenes)])
    first, *others = scenes
    bar = f"bar ≤ {_NOISE:g}x + {_NOISE_MS:g} ms"
    for scene in others:
        for percent in (50, 95):
            before, after = (milliseconds(each.rounds, percent) for each in (first, scene))
            met = verdict(met=_is_as_before(before, after))
            yield f"  {scene.name}: p{percent} {after:.1f} ms, without {before:.1f} ms ({bar}): {met}"
        before, after = (each.claim.lanes + each.claim.candidates for each in (first, scene))
        met = verdict(met=_is_as_before(before, after))
        yield f"  {scene.name}: claiming {after:.2f} ms, without {before:.2f} ms ({bar}): {met}"


def _is_as_before(before: float, after: float) -> bool:
    return after <= _NOISE * before + _NOISE_MS


def _row(scene: Scene) -> Row:
    claim = (f"{scene.claim.lanes:.2f}", f"{scene.claim.candidates:.2f}")
    return (*row(scene.name, scene.rounds), *claim)


def _refusing(stack: ExitStack) -> str:
    """The URL of a port that is taken, and at which nobody listens."""
    taken = stack.enter_context(socket.socket())
    taken.bind(("127.0.0.1", 0))
    return f"http://127.0.0.1:{taken.getsockname()[1]}/"


def _scene(
    stack: ExitStack, engine: Engine, folder: Path, sink: Sink, name: str, dead: str, size: int
) -> Scene:
    urls = [*map(sink.url, WELL), dead]
    shop = stack.enter_context(webhook_shop(engine, folder, name.partition(",")[0], urls))
    uvloop.run(_fill(shop, [_PAST] * len(urls)))
    uvloop.run(_finish(shop))
    vacuum(engine, shop.database)
    uvloop.run(_fill(shop, [*[_AT_LEAST] * len(WELL), size]))
    return Scene(name, shop, uvloop.run(_claim(shop)))


async def _fill(shop: WebhookShop, counts: list[int]) -> None:
    """Makes so many deliveries to each endpoint, all of one event, and all due."""
    async with store(shop.database) as database:
        event = await database.reading().row(_PAST_EVENT, subject=f"products/{shop.past}")
        assert event is not None
        for endpoint_id, count in zip(shop.endpoints, counts, strict=True):
            rows = _deliveries(endpoint_id, count, event_id=event[0], event_type=event[1])
            while piece := list(islice(rows, _PIECE)):
                await _queue(database, piece)


async def _finish(shop: WebhookShop) -> None:
    """All that is due has been delivered."""

    async def work(tx: Writing) -> None:
        await tx.run(_FINISH)

    async with store(shop.database) as database:
        await database.write(work)


async def _queue(database: Database, rows: list[dict[str, object]]) -> None:
    async def work(tx: Writing) -> None:
        await tx.many(QUEUE, rows)

    await database.write(work)


def _deliveries(endpoint_id: str, count: int, **event: str) -> Iterator[dict[str, object]]:
    """One due a millisecond after the other, the last of them now."""
    ids, now = Ids(), Clock().now_ms()
    for at in range(now - count, now):
        yield delivery(ids.new(at), endpoint_id, instant(at), **event)


async def _claim(shop: WebhookShop) -> Claim:
    async with store(shop.database) as database:
        now = instant(Clock().now_ms())
        lanes = await _milliseconds(database, LANES, after="")
        return Claim(lanes, await _milliseconds(database, CANDIDATES, lanes=shop.endpoints, now=now))


async def _milliseconds(database: Database, statement: Statement, **given: object) -> float:
    taken: list[float] = []
    while len(taken) < _TIMES and sum(taken) < _LIMIT:
        began = perf_counter()
        await database.reading().rows(statement, **given)
        taken.append(perf_counter() - began)
    return 1_000 * median(taken)
