"""How soon does an event arrive: 200 deliveries a second to ten endpoints, and again with one that hangs.

One process serves and delivers on the first core; changes are sent at a steady rate from the second, where
the sink is too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.databases import Engine
from benchmarks.table import Row, aligned, verdict
from benchmarks.webhook_delays import Delay, observe, percentile
from benchmarks.webhook_loop import PATHS
from benchmarks.webhook_shop import webhook_shop
from benchmarks.webhook_sink import HANGING, sinking

LATENCY = "delivery-latency"
_EVENTS = 20  # a second, each to ten endpoints
_SECONDS = 10.0
WELL = PATHS[:-1]
_P95 = 50
_GROWTH = 10

_PERCENTS = (50, 95, 99)
HEADINGS: Row = ("ms to arrive", *[f"p{p}" for p in _PERCENTS], *[f"p{p} of answer" for p in _PERCENTS])


@dataclass(frozen=True)
class Latency:
    """The delays of each round."""

    alone: list[list[Delay]]
    beside_hanging: list[list[Delay]]


def measure(engine: Engine, folder: Path, rounds: int) -> Latency:
    """With and without, in turn, each on a database of its own."""
    found = Latency([], [])
    with (
        sinking(folder) as sink,
        webhook_shop(engine, folder, "well", [sink.url(path) for path in PATHS]) as well,
        webhook_shop(engine, folder, "one hangs", [sink.url(path) for path in (*WELL, HANGING)]) as one_hangs,
    ):
        for _ in range(rounds):
            found.alone.append(observe(well, sink, PATHS, _EVENTS, _SECONDS, folder))
            found.beside_hanging.append(observe(one_hangs, sink, WELL, _EVENTS, _SECONDS, folder))
    return found


def lines(engine: Engine, found: Latency) -> Iterator[str]:
    yield f"delivery-latency ({engine}): {_EVENTS} changes a second, each to {len(PATHS)} endpoints"
    nine = [[delay for delay in delays if delay.path in WELL] for delays in found.alone]
    shown = {
        "ten endpoints": found.alone,
        "nine of them": nine,
        "nine beside one that hangs": found.beside_hanging,
    }
    yield from aligned([HEADINGS, *(row(name, rounds) for name, rounds in shown.items())])
    p95 = milliseconds(found.alone, 95)
    yield f"  p95 is {p95:.1f} ms (bar < {_P95} ms): {verdict(met=p95 < _P95)}"
    growth = milliseconds(found.beside_hanging, 99) - milliseconds(nine, 99)
    met = verdict(met=growth < _GROWTH)
    yield f"  one that hangs adds {growth:.1f} ms to the p99 of the others (bar < {_GROWTH} ms): {met}"


def row(name: str, rounds: Sequence[Sequence[Delay]]) -> Row:
    """Percentiles since the change was sent, and since it was answered."""
    sent = [f"{milliseconds(rounds, percent):.1f}" for percent in _PERCENTS]
    answered = [f"{milliseconds(rounds, percent, answered=True):.1f}" for percent in _PERCENTS]
    return (name, *sent, *answered)


def milliseconds(rounds: Sequence[Sequence[Delay]], percent: int, *, answered: bool = False) -> float:
    """A percentile of each round, and of those the median."""
    return 1_000 * median(
        percentile(sorted(each.since_answered if answered else each.since_sent for each in delays), percent)
        for delays in rounds
    )
