"""SQLite, embedded: bounded reads on the event loop, writes in groups that share one fsync.

Transactions that arrive while a commit is on its way to the disk wait, and then run one after another inside
savepoints of one SQLite transaction; a failed one rolls back to its savepoint alone. Statements run on the
event loop's thread, where they cost microseconds; only what waits for a disk or for another process runs in
a thread: COMMIT, a contended BEGIN, checkpoints, and scans.

SQLite itself comes with the driver, `apsw`. No other copy of the library may open the same file in the same
process: closing it would drop the locks that this one holds (sqlite.org/howtocorrupt.html, 2.2.1).
"""

import asyncio
import logging
import re
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import apsw

from tradepost.problems import Unavailable
from tradepost.storage import migrations
from tradepost.storage.checkpoints import CHECKPOINT, KEPT_BYTES, Checkpoints
from tradepost.storage.commits import Commits
from tradepost.storage.database import Noticed, Row, UniqueViolation, Writing
from tradepost.storage.statement import SQLITE, Compiled, Statement, compile_statement

T = TypeVar("T")

_log = logging.getLogger("tradepost.storage")

_GROUP = 64  # transactions that may share a commit; bounds how long the loop is away
_BUSY_MS = 5000
_SCAN_SECONDS = 10.0
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA cache_size = -16384",
    "PRAGMA wal_autocheckpoint = 0",  # see storage/checkpoints.py
    f"PRAGMA journal_size_limit = {KEPT_BYTES}",
)
_UNIQUE = re.compile(r"UNIQUE constraint failed: (\w+)\.(\w+)")


class SqliteDatabase:
    """One file, any number of processes on one machine."""

    name = "sqlite"

    def __init__(self, path: str) -> None:
        self.path = path
        self._waiting: deque[_Pending] = deque()
        self._groups: asyncio.Task[None] | None = None
        self._scans_here = threading.local()
        self._commits = Commits(lambda: connect(path))

    async def start(self) -> None:
        try:
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"SQLite cannot open {self.path}: {error.strerror}"
            raise Unavailable(message) from None
        self._writer = connect(self.path)
        self._writer.set_busy_timeout(0)  # what has to wait, waits in a thread
        self._reader = connect(self.path)
        self._snapshot_open = False
        self._disk = ThreadPoolExecutor(1, "tradepost-disk")
        self._scans = ThreadPoolExecutor(2, "tradepost-scan")
        self._checkpoints = Checkpoints(lambda: connect(self.path))
        self._writer.set_wal_hook(self._checkpoints.note)

    async def stop(self) -> None:
        self._commits.stop()
        while self._groups is not None:
            await self._groups
        self._checkpoints.stop()
        self._scans.shutdown()
        self._disk.shutdown()
        self._close_snapshot()
        self._reader.close()
        self._writer.close()

    def reading(self) -> "SqliteReading":
        self._open_snapshot()
        return SqliteReading(self, self._reader)

    def _open_snapshot(self) -> None:
        """All reads of one turn of the loop see one moment, and lock the file once instead of each.

        The moment ends before the loop waits again, so nobody who was told of a write reads from before it.
        """
        if not self._snapshot_open:
            self._snapshot_open = True
            self._reader.execute("BEGIN")
            asyncio.get_running_loop().call_soon(self._close_snapshot)

    def _close_snapshot(self) -> None:
        if self._snapshot_open:
            self._snapshot_open = False
            self._reader.execute("COMMIT")

    async def write(self, work: Callable[[Writing], Awaitable[T]]) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Pending(work, done))
        if self._groups is None:
            self._groups = asyncio.create_task(self._run_groups())
        return await done

    def wake(self) -> None:
        self._commits.tell()

    def watch(self, noticed: Noticed) -> None:
        self._commits.watch(noticed)

    async def unwatch(self, noticed: Noticed) -> None:
        self._commits.unwatch(noticed)

    async def schema_version(self) -> str | None:
        return _schema_version(self._reader)

    async def migrate(self) -> None:
        connection = connect(self.path)
        connection.execute("BEGIN IMMEDIATE")
        try:
            since = _schema_version(connection)
            if since != migrations.head():
                connection.execute(migrations.script("sqlite", since)).fetchall()
            connection.execute("COMMIT")
        finally:
            connection.close()

    def compiled(self, statement: Statement) -> Compiled:
        found = statement.compiled.get(self.name)
        if found is None:
            found = statement.compiled[self.name] = compile_statement(statement, SQLITE)
        return found

    async def scan(self, sql: str, values: tuple[Any, ...]) -> list[Row]:
        """Reads in a thread, for as long as a scan may take and somebody waits for it."""
        over = threading.Event()
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._scans, self._scan, sql, values, over
            )
        finally:
            over.set()

    def _scan(self, sql: str, values: tuple[Any, ...], over: threading.Event) -> list[Row]:
        if not hasattr(self._scans_here, "connection"):
            self._scans_here.connection = connect(self.path)
        connection: apsw.Connection = self._scans_here.connection
        deadline = time.monotonic() + _SCAN_SECONDS
        # Not `interrupt()` for those nobody waits for: it might come late, and hit the thread's next scan.
        connection.set_progress_handler(lambda: over.is_set() or time.monotonic() > deadline, 100_000)
        try:
            return connection.execute(sql, values).fetchall()
        except apsw.InterruptError:
            message = "The list took too long; narrow the filters or sort by id"
            raise Unavailable(message) from None

    async def _run_groups(self) -> None:
        try:
            while self._waiting:
                # One turn of the loop, so that requests read in the same turn join the group.
                await asyncio.sleep(0)
                await self._run_group()
        finally:
            self._groups = None

    async def _run_group(self) -> None:
        group: list[_Pending] = []
        try:
            await self._begin()
            while self._waiting and len(group) < _GROUP:
                one = self._waiting.popleft()
                if not one.given_up:
                    group.append(one)
                    self._run_one(one)
            changed = any(each.failure is None for each in group)
            await self._on_disk_thread("COMMIT" if changed else "ROLLBACK")
        except apsw.Error as error:
            _log.exception("a group of writes was rolled back")
            self._give_up(group, error)
            return
        for each in group:
            each.settle()
        if self._checkpoints.rest_is_due:
            self._checkpoints.rest_is_due = False
            with suppress(apsw.Error):  # what fails here fails in the thread, too, which logs it
                await self._on_disk_thread(CHECKPOINT)

    def _give_up(self, group: list["_Pending"], error: apsw.Error) -> None:
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")
        if not group:  # not even begun: whoever waits would meet the same
            group = list(self._waiting)
            self._waiting.clear()
        for each in group:
            each.failure = Unavailable(f"The database did not take the write ({error.__class__.__name__})")
            each.settle()

    async def _begin(self) -> None:
        """IMMEDIATE: a transaction that turns from reading to writing can fail without waiting its turn."""
        try:
            self._writer.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            await self._on_disk_thread("BEGIN IMMEDIATE", wait_ms=_BUSY_MS)

    async def _on_disk_thread(self, sql: str, wait_ms: int = 0) -> None:
        def run() -> None:
            self._writer.set_busy_timeout(wait_ms)
            try:
                self._writer.execute(sql).fetchall()
            finally:
                self._writer.set_busy_timeout(0)

        await asyncio.get_running_loop().run_in_executor(self._disk, run)

    def _run_one(self, one: "_Pending") -> None:
        execute = self._writer.execute
        execute("SAVEPOINT one")
        try:
            one.result = _without_waiting(one.work(SqliteWriting(self, self._writer)))
        except Exception as failure:  # noqa: BLE001 (handed to the one who waits for it)
            one.failure = failure
            execute("ROLLBACK TO one")
        execute("RELEASE one")


class _Pending:
    """A transaction that waits for its group, and whoever waits for it."""

    __slots__ = ("_done", "failure", "result", "work")

    def __init__(self, work: Callable[[Writing], Awaitable[Any]], done: asyncio.Future[Any]) -> None:
        self.work = work
        self._done = done
        self.result: Any = None
        self.failure: Exception | None = None

    @property
    def given_up(self) -> bool:
        """Nobody waits for it any more: it was cancelled before its turn came."""
        return self._done.done()

    def settle(self) -> None:
        if self._done.done():
            return
        if self.failure is None:
            self._done.set_result(self.result)
        else:
            self._done.set_exception(self.failure)


def connect(path: str) -> apsw.Connection:
    """A connection as every process of tradepost uses it."""
    try:
        connection = apsw.Connection(path, statementcachesize=512)
    except apsw.CantOpenError as error:
        message = f"SQLite cannot open {path}: {error}"
        raise Unavailable(message) from None
    connection.set_busy_timeout(_BUSY_MS)
    for pragma in _PRAGMAS:
        connection.execute(pragma).fetchall()
    connection.create_scalar_function("tradepost_fold", _fold, 1, deterministic=True)
    return connection


def _fold(*given: Any) -> str | None:
    """A text without case; on PostgreSQL a migration makes the same."""
    return None if given[0] is None else str(given[0]).lower()


def _schema_version(connection: apsw.Connection) -> str | None:
    try:
        found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except apsw.SQLError:
        return None
    return str(found[0]) if found else None


def _without_waiting(work: Awaitable[Any]) -> Any:
    """Runs a coroutine that only awaits its own transaction, whose statements never suspend here."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as finished:
        return finished.value
    message = "a transaction awaited something other than its own statements"
    raise RuntimeError(message)


class SqliteReading:
    """Reads on the event loop's own connection; scans go to a thread."""

    __slots__ = ("_connection", "_database", "nanoseconds", "statements")

    def __init__(self, database: SqliteDatabase, connection: apsw.Connection) -> None:
        self._database = database
        self._connection = connection
        self.statements = 0
        self.nanoseconds = 0

    async def row(self, statement: Statement, **given: Any) -> Row | None:
        began = time.perf_counter_ns()
        sql, bind = self._database.compiled(statement)
        found: Row | None = self._connection.execute(sql, bind(given)).fetchone()
        self._count(began)
        return found

    async def rows(self, statement: Statement, **given: Any) -> list[Row]:
        began = time.perf_counter_ns()
        sql, bind = self._database.compiled(statement)
        if statement.bounded:
            found = self._connection.execute(sql, bind(given)).fetchall()
        else:
            found = await self._database.scan(sql, bind(given))
        self._count(began)
        return found

    def _count(self, began: int) -> None:
        self.statements += 1
        self.nanoseconds += time.perf_counter_ns() - began


class SqliteWriting(SqliteReading):
    """One transaction, inside its savepoint."""

    __slots__ = ()
    late_ms = 0  # writers follow one another

    async def rows(self, statement: Statement, **given: Any) -> list[Row]:
        began = time.perf_counter_ns()
        sql, bind = self._database.compiled(statement)
        found = self._connection.execute(sql, bind(given)).fetchall()
        self._count(began)
        return found

    async def run(self, statement: Statement, **given: Any) -> int:
        began = time.perf_counter_ns()
        sql, bind = self._database.compiled(statement)
        try:
            self._connection.execute(sql, bind(given))
        except apsw.ConstraintError as error:
            raise _violation(error) from error
        self._count(began)
        return self._connection.changes()

    async def many(self, statement: Statement, sets: Iterable[Mapping[str, Any]]) -> None:
        began = time.perf_counter_ns()
        sql, bind = self._database.compiled(statement)
        try:
            self._connection.executemany(sql, [bind(given) for given in sets])
        except apsw.ConstraintError as error:
            raise _violation(error) from error
        self._count(began)


def _violation(error: apsw.ConstraintError) -> Exception:
    unique = _UNIQUE.search(str(error))
    return UniqueViolation(unique[1], unique[2]) if unique else error
