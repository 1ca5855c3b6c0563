"""How many deliveries a second: a backlog for ten endpoints, sent by workers, beside a loop that only posts.

The backlog is made by changes of products through the API, and held until the workers are up. A worker has
the first core, the sink the second; a second worker has whatever is free, as PostgreSQL has. On PostgreSQL
once more for as many endpoints as fill the places of two workers and take their time to answer. Then the same
end to end: one process serves steady changes and delivers their events.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import uvloop

from benchmarks import cores, webhook_loop
from benchmarks.databases import Engine, vacuum
from benchmarks.servers import Server
from benchmarks.table import Row, aligned, verdict
from benchmarks.webhook_delays import collect, delays_of, percentile
from benchmarks.webhook_loop import PATHS, Posted
from benchmarks.webhook_shop import DELIVERING, WITHOUT_DELIVERIES, WebhookShop, webhook_shop
from benchmarks.webhook_sink import SLOW, SLOW_SECONDS, Arrival, Sink, sinking
from benchmarks.webhook_writer import write

DELIVERIES = "deliveries"
_EVENTS = 2_000
_BACKLOG = _EVENTS * len(PATHS)
_SLOW_PATHS = tuple(f"{SLOW}{number}" for number in range(256))
_SLOW_EVENTS = 80
_STEADY = (100, 300)  # events a second
_STEADY_SECONDS = 10.0

_PER_SECOND = {Engine.SQLITE: 3_000, Engine.POSTGRES: 1_500}
_OF_LOOP = {Engine.SQLITE: 0.4}
_LOOPS = ("uvloop", "asyncio")
_HEADINGS: Row = (
    "sender",
    "deliveries/s",
    "arrived/s",
    "CPU µs",
    "of core",
    "sink",
    "of uvloop",
    "of asyncio",
)


@dataclass(frozen=True)
class Drain:
    """Deliveries a second until all were written down, and until all had come; CPU seconds and shares.

    `twice` is how many pairs of endpoint and event came more than once.
    """

    count: int
    rate: float
    arrival_rate: float
    cpu: float
    share: float
    sink_share: float
    twice: int
    length: int


@dataclass(frozen=True)
class Steady:
    """End to end at so many events a second; `lag` is seconds from the last change to the last arrival."""

    events: int
    rate: float
    lag: float
    delays: list[float]
    share: float


@dataclass(frozen=True)
class Throughput:
    """By the number of workers, for receivers that answer at once and for slow ones; by loop; by rate."""

    drains: dict[int, list[Drain]]
    slow: dict[int, list[Drain]]
    loops: dict[str, list[Posted]]
    steady: list[Steady]


def measure(engine: Engine, folder: Path, rounds: int) -> Throughput:
    """Everyone takes a turn in each round."""
    several = engine is not Engine.SQLITE
    drains: dict[int, list[Drain]] = {1: [], 2: []} if several else {1: []}
    slow: dict[int, list[Drain]] = {1: [], 2: []} if several else {}
    loops: dict[str, list[Posted]] = {loop: [] for loop in _LOOPS}
    with sinking(folder) as sink:
        with _shop(engine, folder, sink, PATHS) as shop:
            for _ in range(rounds):
                for workers, measured in drains.items():
                    measured.append(_drain(shop, sink, workers, _EVENTS, folder))
                for loop, posted in loops.items():
                    posted.append(webhook_loop.measure(sink, _BACKLOG, drains[1][-1].length, loop))
            steady = [_steady(shop, sink, events, folder) for events in _STEADY]
        if slow:
            with _shop(engine, folder, sink, _SLOW_PATHS) as shop:
                for _ in range(rounds):
                    for workers, measured in slow.items():
                        measured.append(_drain(shop, sink, workers, _SLOW_EVENTS, folder))
    return Throughput(drains, slow, loops, steady)


def lines(engine: Engine, found: Throughput) -> Iterator[str]:
    yield f"deliveries ({engine}): {_BACKLOG:,} that wait for {len(PATHS)} endpoints, until written down"
    loops = {loop: median(each.rate for each in posted) for loop, posted in found.loops.items()}
    bare = [_row_of_loop(loop, posted) for loop, posted in found.loops.items()]
    yield from aligned([_HEADINGS, *bare, *(_row(n, each, loops) for n, each in found.drains.items())])
    if engine is Engine.POSTGRES:
        yield "  * PostgreSQL and the second worker run on both cores; CPU and share are of the workers alone"
    yield from _judged(engine, found, loops)
    yield from _said_of_slow(found.slow)
    for steady in found.steady:
        yield _said(steady)


def _judged(engine: Engine, found: Throughput, loops: dict[str, float]) -> Iterator[str]:
    one, bar = _rate(found.drains[1]), _PER_SECOND[engine]
    yield f"  one worker delivers {one:,.0f}/s (bar ≥ {bar:,}/s): {verdict(met=one >= bar)}"
    if engine in _OF_LOOP:
        least = _OF_LOOP[engine]
        for loop, rate in loops.items():
            met = verdict(met=one / rate >= least)
            yield f"  that is {one / rate:.2f}x of the bare loop on {loop} (bar ≥ {least:g}x): {met}"
    if 2 in found.drains:
        yield _compared(found.drains)
    both = [*found.drains.values(), *found.slow.values()]
    twice = sum(drain.twice for drains in both for drain in drains)
    yield f"  {twice} events came twice to an endpoint (bar 0): {verdict(met=twice == 0)}"


def _compared(drains: dict[int, list[Drain]]) -> str:
    times = _rate(drains[2]) / _rate(drains[1])
    return f"  two workers deliver {times:.2f}x as much as one (bar > 1x): {verdict(met=times > 1)}"


def _said_of_slow(drains: dict[int, list[Drain]]) -> Iterator[str]:
    for workers, measured in drains.items():
        cpu = 1e6 * median(drain.cpu / drain.count for drain in measured)
        yield (
            f"  {measured[0].count:,} to {len(_SLOW_PATHS)} endpoints that take {1_000 * SLOW_SECONDS:g} ms,"
            f" {workers} at work: {_rate(measured):,.0f} deliveries/s, {cpu:.0f} µs of CPU each"
        )
    if drains:
        yield _compared(drains)


def _said(steady: Steady) -> str:
    ordered = sorted(steady.delays)
    p50, p99 = (1_000 * percentile(ordered, percent) for percent in (50, 99))
    return (
        f"  end to end, {steady.events} events/s to {len(PATHS)} endpoints, one process:"
        f" {steady.rate:,.0f} deliveries/s, p50 {p50:.0f} ms, p99 {p99:.0f} ms,"
        f" the last {1_000 * steady.lag:.0f} ms after the last change; {steady.share:.0%} of a core"
    )


def _row_of_loop(loop: str, posted: list[Posted]) -> Row:
    rate, cpu = median(each.rate for each in posted), median(each.cpu for each in posted)
    return (f"bare aiohttp on {loop}", f"{rate:,.0f}", "", f"{cpu:.0f}", "", "", "", "")


def _row(workers: int, drains: list[Drain], loops: dict[str, float]) -> Row:
    rate = _rate(drains)
    return (
        "a worker" if workers == 1 else f"{workers} workers",
        f"{rate:,.0f}",
        f"{median(drain.arrival_rate for drain in drains):,.0f}",
        f"{1e6 * median(drain.cpu / drain.count for drain in drains):.0f}",
        f"{median(drain.share for drain in drains):.0%}",
        f"{median(drain.sink_share for drain in drains):.0%}",
        *[f"{rate / loops[loop]:.2f}x" for loop in _LOOPS],
    )


def _rate(drains: list[Drain]) -> float:
    return median(drain.rate for drain in drains)


def _drain(shop: WebhookShop, sink: Sink, workers: int, events: int, folder: Path) -> Drain:
    vacuum(shop.engine, shop.database)
    with WITHOUT_DELIVERIES.serve(shop.database, shop.key, folder / f"{shop.name}.log") as server:
        write(server.port, shop.key, shop.changes(events), rate=None)
    uvloop.run(shop.hold())
    sink.take()
    with ExitStack() as stack:
        running = [stack.enter_context(_worker(shop, number, folder)) for number in range(workers)]
        pids = [sink.pid, *[worker.pid for worker in running]]
        before = [cores.cpu_seconds(pid) for pid in pids]
        uvloop.run(shop.let_go())
        sink.wait_for(events * len(shop.endpoints))
        written_down = uvloop.run(shop.written_down())
        used = [cores.cpu_seconds(pid) - cpu for pid, cpu in zip(pids, before, strict=True)]
    return _drained(sink.take(), written_down, used[0], sum(used[1:]))


def _worker(shop: WebhookShop, number: int, folder: Path) -> AbstractContextManager[Server]:
    core = None if number else cores.SERVER_CORE
    return DELIVERING.work(shop.database, folder / f"{shop.name}, worker {number}.log", core)


def _drained(arrived: Sequence[Arrival], written_down: float, sink_cpu: float, cpu: float) -> Drain:
    first, last = arrived[0].at, arrived[-1].at
    elapsed = written_down - first
    distinct = len({(each.path, each.event_id) for each in arrived})
    return Drain(
        count=distinct,
        rate=distinct / elapsed,
        arrival_rate=distinct / (last - first),
        cpu=cpu,
        share=cpu / elapsed,
        sink_share=sink_cpu / elapsed,
        twice=len(arrived) - distinct,
        length=arrived[0].length,
    )


def _steady(shop: WebhookShop, sink: Sink, events: int, folder: Path) -> Steady:
    vacuum(shop.engine, shop.database)
    changes = shop.changes(round(events * _STEADY_SECONDS))
    sink.take()
    with DELIVERING.serve(shop.database, shop.key, folder / f"{shop.name}.log") as server:
        cpu, began = cores.cpu_seconds(server.pid), perf_counter()
        written = write(server.port, shop.key, changes, events)
        arrived = collect(sink, written, PATHS)
        cpu = cores.cpu_seconds(server.pid) - cpu
    first, last = arrived[0].at, arrived[-1].at
    delays = [delay.since_sent for _, delay in delays_of(written, arrived)]
    lag = last - written[-1].sent
    return Steady(events, len(arrived) / (last - first), lag, delays, cpu / (last - began))


def _shop(
    engine: Engine, folder: Path, sink: Sink, paths: Sequence[str]
) -> AbstractContextManager[WebhookShop]:
    return webhook_shop(engine, folder, DELIVERIES, [sink.url(path) for path in paths])
