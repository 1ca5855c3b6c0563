"""Is this checkout slower than another version of tradepost: both answer the same questions in turn.

The version before comes from git and runs from its source, with the packages that are installed here. It
fills a database, and the present version migrates a copy of it, so that both get the same requests. Each
round starts new processes, because no two processes of one program are equally fast. The figure compared is
the CPU time of the server for each request; the CPU time of PostgreSQL is not counted.
"""

import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from statistics import median

import msgspec

from benchmarks import cores
from benchmarks.bench_deliveries import DELIVERIES
from benchmarks.bench_graphql_http import ERRORS, TREE
from benchmarks.bench_item import ITEM
from benchmarks.bench_order import ORDER
from benchmarks.bench_page import PAGE
from benchmarks.bench_place import PLACE
from benchmarks.client import RefusedError
from benchmarks.contestants import printed
from benchmarks.databases import Engine, scratch, vacuum
from benchmarks.ratios import ratio
from benchmarks.sample import Sample
from benchmarks.servers import ROOT
from benchmarks.services import OpenService, Service, Size, opened
from benchmarks.shop import Shop
from benchmarks.table import Row, aligned, verdict
from benchmarks.webhook_burst import Bursts, deliver, register
from benchmarks.webhook_shop import DELIVERING
from benchmarks.webhook_sink import Sink, sinking

# Placing and delivering come last: they change what the others look at.
_LOADS = {question.name: question for question in (ITEM, PAGE, ORDER, TREE, PLACE)}
QUESTIONS = (*_LOADS, DELIVERIES)
_SIZE = Size(users=600, products=10_000, orders=10_000)
_WARM_UP = 0.5
_BAR = 1.03
_HEADINGS: Row = ("question", "before µs", "now µs", "CPU", "95 % interval", "rate", f"≤ {_BAR:g}")

Figure = Sample | Bursts


@dataclass
class Version:
    """One of the two versions, its database and its figures for each question."""

    service: Service
    database: str
    figures: dict[str, list[Figure]] = field(default_factory=dict)


@dataclass(frozen=True)
class Arena:
    """Both versions; the key, the shop and the endpoints are the same in both databases."""

    before: Version
    now: Version
    key: str
    shop: Shop
    endpoints: list[str]
    sink: Sink
    folder: Path


@contextmanager
def prepared(ref: str, engine: Engine, folder: Path) -> Iterator[Arena]:
    """Fills both databases. RuntimeError if git has no such version, or if one of the two does not start."""
    before, now = _run_from(_taken(ref, folder), ref), _run_from(ROOT, "this checkout")
    with ExitStack() as stack:
        sink = stack.enter_context(sinking(folder))
        database = stack.enter_context(scratch(engine, folder))
        with opened(before, database, _SIZE, folder) as filled, filled.client() as client:
            endpoints = register(client, sink)
        vacuum(engine, database)
        copy = stack.enter_context(scratch(engine, folder, copy_of=database))
        now.run(copy, "migrate")
        sides = Version(before, database), Version(now, copy)
        yield Arena(*sides, filled.key, filled.shop, endpoints, sink, folder)


def compare(arena: Arena, questions: Sequence[str], rounds: int, seconds: float) -> None:
    """Fills in the figures. RefusedError if a single request was refused."""
    versions = [arena.before, arena.now]
    for _ in range(rounds):
        with ExitStack() as stack:
            services = [stack.enter_context(_served(version, arena)) for version in versions]
            for name in questions:
                figures = _asked(name, services, arena, seconds)
                for version, figure in zip(versions, figures, strict=True):
                    version.figures.setdefault(name, []).append(figure)
        versions.reverse()


def lines(arena: Arena, engine: Engine) -> Iterator[str]:
    yield f"versions ({engine}): CPU time of {arena.now.service.name} beside {arena.before.service.name}"
    rows = [_row(name, arena.before.figures[name], arena.now.figures[name]) for name in arena.now.figures]
    yield from aligned([_HEADINGS, *rows])


def _row(name: str, before: Sequence[Figure], now: Sequence[Figure]) -> Row:
    cpus = [[each.cpu for each in figures] for figures in (before, now)]
    rates = [[each.rate for each in figures] for figures in (before, now)]
    cpu, rate = (ratio(of_now, of_before) for of_before, of_now in (cpus, rates))
    return (
        name,
        *(f"{median(each):.1f}" for each in cpus),
        f"{cpu.median:.3f}x",
        f"{cpu.low:.3f} to {cpu.high:.3f}",
        f"{rate.median:.2f}x",
        verdict(met=cpu.low <= _BAR),
    )


def _asked(name: str, services: Sequence[OpenService], arena: Arena, seconds: float) -> Sequence[Figure]:
    if name == DELIVERIES:
        return deliver(services, arena.endpoints, arena.sink)
    requests = _LOADS[name].requests(arena.shop)
    refusal = ERRORS if name == TREE.name else b""
    asked = [replace(service.asked(requests), mark_of_refusal=refusal) for service in services]
    told = msgspec.msgpack.encode([each.load(seconds, _WARM_UP) for each in asked])
    output = printed(["benchmarks.load_in_turns"], cores.LOAD_CORE, told)
    samples = msgspec.json.decode(output, type=list[Sample])
    for service, sample in zip(services, samples, strict=True):
        if sample.refused:
            raise RefusedError(f"{service.name} refused {sample.refused} requests, first: {sample.refusal}")
    return samples


@contextmanager
def _served(version: Version, arena: Arena) -> Iterator[OpenService]:
    name = version.service.name
    with version.service.serve(version.database, arena.key, arena.folder / f"{name}.log") as server:
        yield OpenService(name, server, arena.key, arena.shop)


def _taken(ref: str, folder: Path) -> Path:
    """Unpacks a version from git; returns the folder."""
    command = ["git", "archive", "--format=tar", ref, "src", "contract"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"git has no version {ref}: {done.stderr.decode().strip()}")
    target = folder / "version before"
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(target, filter="data")
    return target


def _run_from(checkout: Path, name: str) -> Service:
    """Runs from the source in a checkout, which has the GraphQL schema beside it in `contract/`."""
    settings = {**DELIVERING.settings, "PYTHONPATH": str(checkout / "src")}
    return replace(DELIVERING, name=name, command=(sys.executable, "-m", "tradepost"), settings=settings)
