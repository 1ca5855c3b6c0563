"""SQLite's write-ahead log: a long reader makes it long, and stops no writer."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.conformance.store import ADD_USER, Store, Work, sql, user_row
from tests.service import Service
from tradepost.storage import checkpoints, sqlite
from tradepost.storage.database import Writing
from tradepost.storage.sqlite import connect

Size = Callable[[], int]

MIB = 2**20
PAGES = MIB // 4096
GROWTH, LONG, KEPT = 1, 2, 2  # MiB
FAR_BEYOND = 8 * MIB
DOCUMENT = "x" * (MIB // 16)
WRITES = 20  # one after the other
SECONDS = 5  # for all of them: SQLite would wait for a lock as long before each
BIG = sql("INSERT INTO persisted_queries (hash, document, used_at) VALUES (:hash, :document, '')")

_READ = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM users").fetchone()
print("reading", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def store(new_service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch) -> Store:
    """SQLite with all lengths smaller, so that little has to be written; PostgreSQL makes its own checkpoints."""
    monkeypatch.setattr(checkpoints, "_GROWTH_PAGES", GROWTH * PAGES)
    monkeypatch.setattr(checkpoints, "_LONG_PAGES", LONG * PAGES)
    monkeypatch.setattr(sqlite, "_PRAGMAS", (*sqlite._PRAGMAS, f"PRAGMA journal_size_limit = {KEPT * MIB}"))
    return Store(new_service("sqlite"))


@pytest.fixture
def path(store: Store) -> str:
    return store.service.database_url.removeprefix("sqlite:///")


@pytest.fixture
def size(path: str) -> Size:
    """The size of the log in bytes."""
    return lambda: Path(f"{path}-wal").stat().st_size


@contextmanager
def _in_this_process(path: str) -> Iterator[None]:
    connection = connect(path)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM users").fetchall()
    yield
    connection.close()


@contextmanager
def _in_another_process(path: str) -> Iterator[None]:
    command = [sys.executable, "-c", _READ, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdout
        assert reader.stdout.readline() == b"reading\n"
        yield
        reader.communicate()


def _adds_a_user() -> Work[None]:
    async def work(tx: Writing) -> None:
        await tx.run(ADD_USER, **user_row())

    return work


def _adds(*names: str) -> Work[None]:
    async def work(tx: Writing) -> None:
        await tx.many(BIG, [{"hash": name, "document": DOCUMENT} for name in names])

    return work


@pytest.mark.parametrize("reader", [_in_this_process, _in_another_process])
def test_a_long_reader_stops_no_writer(
    store: Store, path: str, size: Size, reader: Callable[[str], AbstractContextManager[None]]
) -> None:
    """While a read transaction keeps a long log from restarting, writes are as quick as ever; afterwards it restarts."""

    async def writes() -> None:
        async with asyncio.timeout(SECONDS):
            for _ in range(WRITES):
                await store.database.write(_adds_a_user())

    async def writes_until_it_is_short() -> None:
        async with asyncio.timeout(30):
            while size() > KEPT * MIB:
                await store.database.write(_adds_a_user())

    before = store.count("users")
    with reader(path):
        store.write(_adds(*map(str, range(FAR_BEYOND // len(DOCUMENT)))))
        store.run(writes())
        assert size() > FAR_BEYOND
    store.run(writes_until_it_is_short())
    assert store.count("users") >= before + WRITES


def test_the_size_of_the_log_is_measured(store: Store, size: Size) -> None:
    """/metrics has the bytes of the file."""
    store.write(_adds("one"))
    figures = store.service.get("/metrics", key=None).body.decode()
    assert f"\ntradepost_sqlite_wal_bytes {float(size())}\n" in figures


def test_a_log_that_nobody_reads_stays_short(store: Store, size: Size) -> None:
    """However much is written without a pause, the log restarts."""

    async def write(writer: int) -> None:
        for n in range(200):
            await store.database.write(_adds(f"{writer}-{n}"))
            assert size() < FAR_BEYOND

    async def writers() -> None:
        await asyncio.gather(*map(write, range(2)))

    store.run(writers())
