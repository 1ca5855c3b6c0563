"""One question asked of every contestant in turn, round after round: a noisy moment is noisy for all.

Beside tradepost stand (a) bare ASGI giving the same bytes, (b) the same statements in a bare driver loop
where a question has one, and (c) the FastAPI service.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from benchmarks.client import RefusedError
from benchmarks.contestants import Contestant, Loop, Served
from benchmarks.databases import Engine, scratch
from benchmarks.recordings import record
from benchmarks.request import Request
from benchmarks.sample import Sample
from benchmarks.servers import Probe, free_port, serving
from benchmarks.services import PEER, TRADEPOST, OpenService, Size, opened
from benchmarks.shop import Shop

CEILING = "bare ASGI"
DRIVER_LOOP = "driver loop"
SIZE = Size(users=1_000, products=10_000, orders=10_000)
_WARM_UP = 1.0


@dataclass(frozen=True)
class Comparison:
    """`bars`: how many times a contestant's rate tradepost's has to be at least, per engine.

    `fastify`: what Fastify on better-sqlite3 answered a second on a machine of two cores, for scale.
    `loop`: the module of contestant (b).
    """

    name: str
    asks: str
    requests: Callable[[Shop], list[Request]]
    bars: Mapping[Engine, Mapping[str, float]]
    fastify: float | None = None
    loop: str | None = None


@dataclass(frozen=True)
class Arena:
    """Everything that is set up once per engine: both services open, and room for files."""

    engine: Engine
    tradepost: OpenService
    peer: OpenService
    folder: Path


@dataclass
class Outcome:
    name: str
    samples: list[Sample] = field(default_factory=list)


@contextmanager
def prepared(engine: Engine, folder: Path) -> Iterator[Arena]:
    with (
        scratch(engine, folder) as ours,
        scratch(engine, folder) as theirs,
        opened(TRADEPOST, ours, SIZE, folder) as tradepost,
        opened(PEER, theirs, SIZE, folder) as peer,
    ):
        yield Arena(engine, tradepost, peer, folder)


def compare(comparison: Comparison, arena: Arena, rounds: int, seconds: float) -> list[Outcome]:
    """The outcome of tradepost comes first."""
    ours = arena.tradepost.asked(comparison.requests(arena.tradepost.shop))
    theirs = arena.peer.asked(comparison.requests(arena.peer.shop))
    with _ceiling(comparison, arena) as ceiling, _loop(comparison, arena) as loop:
        return take_turns([ours, ceiling, *loop, theirs], rounds, seconds)


def take_turns(contestants: Sequence[Contestant], rounds: int, seconds: float) -> list[Outcome]:
    """RefusedError if a single request was refused: figures of errors mean nothing."""
    outcomes = [Outcome(contestant.name) for contestant in contestants]
    for _ in range(rounds):
        for contestant, outcome in zip(contestants, outcomes, strict=True):
            outcome.samples.append(_measured(contestant, seconds))
    return outcomes


def _measured(contestant: Contestant, seconds: float) -> Sample:
    sample = contestant.measure(seconds, min(_WARM_UP, seconds))
    if sample.refused:
        raise RefusedError(f"{contestant.name} refused {sample.refused} requests, first: {sample.refusal}")
    return sample


@contextmanager
def _ceiling(comparison: Comparison, arena: Arena) -> Iterator[Served]:
    tradepost = arena.tradepost
    requests = comparison.requests(tradepost.shop)
    recordings = arena.folder / f"{comparison.name}.recordings"
    with tradepost.client() as client:
        record(client, requests, recordings)
    probe = Probe(free_port(), requests[0], tradepost.key)
    command = [sys.executable, "-m", "benchmarks.peers.bare_asgi", str(recordings), "--port", str(probe.port)]
    with serving(command, {}, probe, arena.folder / f"{CEILING}.log") as server:
        yield Served.of(CEILING, server, tradepost.key, requests)


@contextmanager
def _loop(comparison: Comparison, arena: Arena) -> Iterator[list[Loop]]:
    """Contestant (b), if the question has one and its module is there."""
    if comparison.loop is None or find_spec(comparison.loop) is None:
        yield []
        return
    with scratch(arena.engine, arena.folder) as database:
        TRADEPOST.fill(database, SIZE)
        yield [Loop(DRIVER_LOOP, comparison.loop, database)]
