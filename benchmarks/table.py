"""A comparison's outcomes as a table: medians over the rounds, ratios, bars and what became of them."""

from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks.comparison import DRIVER_LOOP, Comparison, Outcome
from benchmarks.databases import Engine

Row = tuple[str, ...]

# After a rate.
LOAD_HEADINGS: Row = ("p50 ms", "p99 ms", "CPU µs", "of core")
_HEADINGS: Row = ("contestant", "per second", *LOAD_HEADINGS, "by CPU", "tradepost is", "bar", "")
_FASTIFY = "Fastify (recorded, not run)"


def lines(comparison: Comparison, engine: Engine, outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield f"{comparison.name} ({engine}): {comparison.asks}"
    yield from aligned([_HEADINGS, *_rows(comparison, engine, outcomes)])
    for outcome in outcomes:
        if any(sample.load_was_the_limit for sample in outcome.samples):
            yield f"  * {outcome.name} was not used to the full: the load generator was the limit"
    if engine is Engine.POSTGRES:
        yield "  * the CPU is the service's own: PostgreSQL's processes are neither counted nor pinned"
    if comparison.loop and DRIVER_LOOP not in {outcome.name for outcome in outcomes}:
        yield f"  * {DRIVER_LOOP} skipped: there is no module {comparison.loop}"


def aligned(rows: Sequence[Row]) -> Iterator[str]:
    """The first column to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *figures in rows:
        cells = (cell.rjust(width) for cell, width in zip(figures, widths[1:], strict=True))
        yield "  ".join([f"  {first.ljust(widths[0])}", *cells]).rstrip()


def verdict(*, met: bool) -> str:
    return "met" if met else "NOT met"


def _rows(comparison: Comparison, engine: Engine, outcomes: Sequence[Outcome]) -> Iterator[Row]:
    ours, *others = outcomes
    bars = comparison.bars.get(engine, {})
    yield (ours.name, *figures(ours), "", "", "", "")
    for other in others:
        by_cpu = f"{_median(other, 'cpu') / _median(ours, 'cpu'):.2f}x"
        yield (other.name, *figures(other), by_cpu, *_judged(ratio(ours, other), bars.get(other.name)))
    if engine is Engine.SQLITE and comparison.fastify is not None:
        rate = f"{comparison.fastify:,.0f}"
        times = _median(ours, "rate") / comparison.fastify
        yield (_FASTIFY, rate, *[""] * len(LOAD_HEADINGS), "", *_judged(times, 1.0))


def figures(outcome: Outcome) -> Row:
    return (
        f"{_median(outcome, 'rate'):,.0f}",
        f"{_median(outcome, 'p50'):.2f}",
        f"{_median(outcome, 'p99'):.2f}",
        f"{_median(outcome, 'cpu'):.1f}",
        f"{_median(outcome, 'server_share'):.0%}",
    )


def ratio(one: Outcome, other: Outcome) -> float:
    """How many times the other's rate; within each round, as what slows the machine then slows both."""
    pairs = zip(one.samples, other.samples, strict=True)
    return median(of_one.rate / of_other.rate for of_one, of_other in pairs)


def _judged(times: float, bar: float | None) -> Row:
    shown = f"{times:.2f}x"
    return (shown, "", "") if bar is None else (shown, f"≥ {bar:g}x", verdict(met=times >= bar))


def _median(outcome: Outcome, figure: str) -> float:
    return float(median(getattr(sample, figure) for sample in outcome.samples))
