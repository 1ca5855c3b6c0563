"""Does it stay fast: pages, placing, start and memory, with ten thousand orders and a million (or five)."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks import cores
from benchmarks.bench_place import orders_to_place
from benchmarks.comparison import Outcome, take_turns
from benchmarks.databases import Engine, scratch
from benchmarks.request import Request
from benchmarks.services import TRADEPOST, OpenService, Size, opened
from benchmarks.shop import VARIETY, cursors
from benchmarks.table import LOAD_HEADINGS, Row, aligned, figures, ratio, verdict

SIZES = (10_000, 1_000_000)
FULL_SIZES = (*SIZES, 5_000_000)

# What two runs of the same thing differ by on a machine with noisy cores.
_NOISE = 1.15
_START = 1.0
_RESIDENT = 120

_HEADINGS: Row = ("orders", "start s", "pages/s", *LOAD_HEADINGS, "placed/s", *LOAD_HEADINGS, "MB")


@dataclass(frozen=True)
class Growth:
    """What came of one number of orders; `start` in seconds."""

    orders: int
    start: float
    pages: Outcome
    placing: Outcome
    megabytes: float


def grow(engine: Engine, folder: Path, sizes: Sequence[int], rounds: int, seconds: float) -> list[Growth]:
    """All sizes are open at once and take turns, or a change of the machine's mood would look like growth."""
    with ExitStack() as stack:
        services = [_opened(stack, engine, folder, orders) for orders in sizes]
        pages = [service.asked(_pages_of_orders(service)) for service in services]
        placing = [service.asked(orders_to_place(service.shop)) for service in services]
        measured = zip(
            sizes,
            services,
            take_turns(pages, rounds, seconds),
            take_turns(placing, rounds, seconds),
            strict=True,
        )
        return [
            Growth(orders, service.server.seconds_to_answer, paged, placed, _megabytes(service))
            for orders, service, paged, placed in measured
        ]


def lines(engine: Engine, growths: Sequence[Growth]) -> Iterator[str]:
    yield f"growth ({engine}): pages of 50 orders at all depths, and placing, as the orders become more"
    yield from aligned([_HEADINGS, *map(_row, growths)])
    times = max(ratio(growths[0].pages, growth.pages) for growth in growths)
    start = max(growth.start for growth in growths)
    megabytes = max(growth.megabytes for growth in growths)
    yield f"  a page takes {times:.2f}x as long (bar ≤ {_NOISE:g}x, noise): {verdict(met=times <= _NOISE)}"
    yield f"  start to first answer {start:.2f} s (bar < {_START:g} s): {verdict(met=start < _START)}"
    yield f"  resident {megabytes:.0f} MB (bar < {_RESIDENT} MB): {verdict(met=megabytes < _RESIDENT)}"


def _opened(stack: ExitStack, engine: Engine, folder: Path, orders: int) -> OpenService:
    size = Size(users=10_000, products=10_000, orders=orders)
    database = stack.enter_context(scratch(engine, folder))
    return stack.enter_context(opened(TRADEPOST, database, size, folder))


def _pages_of_orders(service: OpenService) -> list[Request]:
    """From the first page to the last, at even distances."""
    with service.client() as client:
        places = [cursor for cursor, _ in cursors(client, "/v1/orders?limit=200&fields=id")]
    evenly = places[:: max(1, len(places) // VARIETY)]
    return [Request("GET", f"/v1/orders?limit=50{cursor}") for cursor in evenly]


def _megabytes(service: OpenService) -> float:
    return cores.resident_bytes(service.server.pid) / 1e6


def _row(growth: Growth) -> Row:
    start = f"{growth.start:.2f}"
    megabytes = f"{growth.megabytes:.0f}"
    return f"{growth.orders:,}", start, *figures(growth.pages), *figures(growth.placing), megabytes
