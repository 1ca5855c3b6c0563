"""The command: asks the questions named, or all of them, and prints a table for each.

Fails if anything could not be measured; a bar that is not met is said in its table and fails nothing.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

from benchmarks import (
    bench_deliveries,
    bench_delivery_backlog,
    bench_delivery_latency,
    bench_executor,
    bench_graphql_http,
    bench_growth,
    bench_modules,
    bench_subscribers,
    cores,
    table,
    versions,
)
from benchmarks.bench_deliveries import DELIVERIES
from benchmarks.bench_delivery_backlog import BACKLOG
from benchmarks.bench_delivery_latency import LATENCY
from benchmarks.bench_executor import EXECUTOR
from benchmarks.bench_graphql_http import Question
from benchmarks.bench_item import ITEM
from benchmarks.bench_modules import MODULES
from benchmarks.bench_order import ORDER
from benchmarks.bench_page import PAGE
from benchmarks.bench_place import PLACE
from benchmarks.client import RefusedError
from benchmarks.comparison import Comparison, compare, prepared
from benchmarks.databases import Engine, unavailable
from benchmarks.load import CONNECTIONS
from benchmarks.ratios import FEWEST
from benchmarks.servers import ROOT

# Placing comes last: it changes what the others look at.
COMPARISONS = (ITEM, PAGE, ORDER, PLACE)
GROWTH = "growth"
SUBSCRIBERS = "subscribers"
DELIVERING = (DELIVERIES, LATENCY, BACKLOG)


class Options(argparse.Namespace):
    questions: list[str]
    before: str | None
    seconds: float
    rounds: int
    engine: Engine | None
    full: bool


class Failures:
    """What could not be measured; the rest is still asked."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def noted(self, what: str) -> Iterator[None]:
        try:
            yield
        except (RefusedError, RuntimeError, OSError, HTTPException) as error:
            self.count += 1
            _say(f"\n{what} FAILED: {error}")


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    options = _options()
    failures = Failures()
    _say(f"{CONNECTIONS} connections; {options.rounds} rounds of {options.seconds:g} s each, in turn")
    if why := cores.unpinnable():
        _say(f"note: {why}")
    if options.before:
        for engine in [options.engine] if options.engine else Engine:
            _compare_versions(options.before, engine, options, failures)
        return 1 if failures.count else 0
    if EXECUTOR in options.questions:
        with failures.noted(EXECUTOR):
            _say("", *bench_executor.lines(options.rounds))
    if MODULES in options.questions:
        with failures.noted(MODULES), _folder() as folder:
            _say("", *bench_modules.lines(folder))
    for engine in [options.engine] if options.engine else Engine:
        _ask_on(engine, options, failures)
    return 1 if failures.count else 0


def _ask_on(engine: Engine, options: Options, failures: Failures) -> None:
    comparisons = [each for each in COMPARISONS if _is_asked(each, engine, options)]
    graphql = [each for each in bench_graphql_http.QUESTIONS if _is_asked(each, engine, options)]
    growing = GROWTH in options.questions and engine is (options.engine or Engine.SQLITE)
    subscribing = SUBSCRIBERS in options.questions
    delivering = [name for name in DELIVERING if name in options.questions]
    if not comparisons and not graphql and not growing and not subscribing and not delivering:
        return
    if why := unavailable(engine):
        _say(f"\n{engine} skipped: {why}")
        return
    with _folder() as folder:
        if comparisons:
            _compare_all(comparisons, engine, options, failures, folder)
        if graphql:
            _ask_graphql(graphql, engine, options, failures, folder)
        if subscribing:
            _subscribe(engine, options, failures, folder)
        for name in delivering:
            _deliver(name, engine, options, failures, folder)
        if growing:
            _grow(engine, options, failures, folder)


def _compare_versions(before: str, engine: Engine, options: Options, failures: Failures) -> None:
    if why := unavailable(engine):
        _say(f"\n{engine} skipped: {why}")
        return
    load = cores.load_average()
    with failures.noted(f"versions ({engine})"), _folder() as folder:
        with versions.prepared(before, engine, folder) as arena:
            versions.compare(arena, options.questions, options.rounds, options.seconds)
        _say("", *versions.lines(arena, engine))
        _say(f"  load average {load:.1f} before, {cores.load_average():.1f} after")


def _is_asked(comparison: Comparison, engine: Engine, options: Options) -> bool:
    """On the engine that was named, else on those the question has bars for."""
    return comparison.name in options.questions and (options.engine is not None or engine in comparison.bars)


def _compare_all(
    comparisons: list[Comparison], engine: Engine, options: Options, failures: Failures, folder: Path
) -> None:
    with failures.noted(f"{engine}"), prepared(engine, folder) as arena:
        for comparison in comparisons:
            with failures.noted(f"{comparison.name} ({engine})"):
                outcomes = compare(comparison, arena, options.rounds, options.seconds)
                _say("", *table.lines(comparison, engine, outcomes))


def _ask_graphql(
    questions: list[Question], engine: Engine, options: Options, failures: Failures, folder: Path
) -> None:
    with failures.noted(f"graphql ({engine})"), bench_graphql_http.prepared(engine, folder) as arena:
        for question in questions:
            with failures.noted(f"{question.name} ({engine})"):
                outcomes = bench_graphql_http.ask(question, arena, options.rounds, options.seconds)
                _say("", *table.lines(question, engine, outcomes), *arena.skipped)


def _subscribe(engine: Engine, options: Options, failures: Failures, folder: Path) -> None:
    with failures.noted(f"{SUBSCRIBERS} ({engine})"):
        cost = bench_subscribers.measure(engine, folder, options.rounds)
        _say("", *bench_subscribers.lines(engine, cost))


def _deliver(name: str, engine: Engine, options: Options, failures: Failures, folder: Path) -> None:
    before = cores.load_average()
    with failures.noted(f"{name} ({engine})"):
        if name == DELIVERIES:
            throughput = bench_deliveries.measure(engine, folder, options.rounds)
            _say("", *bench_deliveries.lines(engine, throughput))
        elif name == LATENCY:
            latency = bench_delivery_latency.measure(engine, folder, options.rounds)
            _say("", *bench_delivery_latency.lines(engine, latency))
        else:
            size = bench_delivery_backlog.FULL_SIZE if options.full else bench_delivery_backlog.SIZE
            scenes = bench_delivery_backlog.measure(engine, folder, size, options.rounds)
            _say("", *bench_delivery_backlog.lines(engine, scenes))
        _say(f"  load average {before:.1f} before, {cores.load_average():.1f} after")


def _grow(engine: Engine, options: Options, failures: Failures, folder: Path) -> None:
    sizes = bench_growth.FULL_SIZES if options.full else bench_growth.SIZES
    with failures.noted(f"{GROWTH} ({engine})"):
        growths = bench_growth.grow(engine, folder, sizes, options.rounds, options.seconds)
        _say("", *bench_growth.lines(engine, growths))


@contextmanager
def _folder() -> Iterator[Path]:
    """In the checkout, as temporary folders are often in memory, where nothing is ever durable."""
    var = ROOT / "var"
    var.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="benchmarks-", dir=var) as folder:
        yield Path(folder)


def _options() -> Options:
    compared = (each.name for each in (*COMPARISONS, *bench_graphql_http.QUESTIONS))
    names = [EXECUTOR, MODULES, *compared, SUBSCRIBERS, *DELIVERING, GROWTH]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "questions", nargs="*", metavar="question", help=f"of {', '.join(names)}; all unless told"
    )
    parser.add_argument(
        "--seconds", type=float, help="of each measurement, after a warm-up; 3, or 1.5 for versions"
    )
    parser.add_argument("--rounds", type=int, help="3, or 15 for versions")
    parser.add_argument("--engine", type=Engine, choices=list(Engine), help="the one to measure on")
    parser.add_argument("--full", action="store_true", help="5 million orders and a backlog of 1 million too")
    parser.add_argument(
        "--before",
        metavar="VERSION",
        help="compare this checkout with another version of tradepost, a commit or tag of git, instead of"
        f" with other services; of {', '.join(versions.QUESTIONS)}",
    )
    options = parser.parse_args(namespace=Options())
    names = list(versions.QUESTIONS) if options.before else names
    if unknown := set(options.questions) - set(names):
        parser.error(f"no such question: {', '.join(sorted(unknown))}")
    options.questions = [name for name in names if name in options.questions] or names
    options.rounds = options.rounds or (15 if options.before else 3)
    options.seconds = options.seconds or (1.5 if options.before else 3.0)
    if options.before and options.rounds < FEWEST:
        parser.error(f"an interval takes {FEWEST} rounds")
    return options


def _say(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
