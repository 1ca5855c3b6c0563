"""SQLite, embedded: bounded reads on the event loop, writes in groups that share one fsync.

Transactions that arrive while a commit is being written to the disk wait, and then run one after another
inside savepoints of one SQLite transaction; a failed one rolls back to its own savepoint. Statements run on
the thread of the event loop, where they take microseconds; only operations that wait for a disk or for
another process run in other threads: COMMIT, a contended BEGIN, checkpoints and scans.

SQLite itself comes with the driver, `apsw`. No other copy of the library may open the same file in the same
process: closing the file there would drop the locks held here (sqlite.org/howtocorrupt.html, 2.2.1).
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
import msgspec

from tradepost.problems import Unavailable
from tradepost.storage import migrations
from tradepost.storage.checkpoints import CHECKPOINT, RESTARTED_BYTES, Checkpoints
from tradepost.storage.database import OnWakeup, Row, UniqueViolation, Writing
from tradepost.storage.sqlite_wakeups import SqliteWakeups
from tradepost.storage.statement import SQLITE, Bind, Compiled, Statement, compile_statement, positional

T = TypeVar("T")

_log = logging.getLogger("tradepost.storage")

_GROUP = 64  # transactions that may share a commit; limits the time for which the event loop is blocked
_BUSY_MS = 5000
_SCAN_SECONDS = 10.0
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA cache_size = -16384",
    "PRAGMA wal_autocheckpoint = 0",  # see storage/checkpoints.py
    f"PRAGMA journal_size_limit = {RESTARTED_BYTES}",
)
_UNIQUE = re.compile(r"UNIQUE constraint failed: (\w+)\.(\w+)")


class SqliteDatabase:
    """A SQLite file, for any number of processes on one machine."""

    name = "sqlite"

    def __init__(self, path: str) -> None:
        self.path = path
        self._waiting: deque[_Pending] = deque()
        self._groups: asyncio.Task[None] | None = None
        self._scans_here = threading.local()
        self._listeners: set[OnWakeup] = set()
        self._wakeups = SqliteWakeups(lambda: connect(path), self.wake)

    async def start(self) -> None:
        try:
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"SQLite cannot open {self.path}: {error.strerror}"
            raise Unavailable(message) from None
        self._writer = connect(self.path)
        self._writer.set_busy_timeout(0)  # the event loop must not wait; threads do
        self._reader = connect(self.path)
        self._snapshot_open = False
        self._disk = ThreadPoolExecutor(1, "tradepost-disk")
        self._scans = ThreadPoolExecutor(2, "tradepost-scan")
        self._checkpoints = Checkpoints(lambda: connect(self.path))
        self._writer.set_wal_hook(self._checkpoints.note)

    async def stop(self) -> None:
        self._listeners.clear()
        self._wakeups.stop()
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
        """Lets all reads of one turn of the event loop share a snapshot, and so lock the file once only.

        The snapshot ends before the loop waits again, so that no read after a confirmed write misses it.
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
        for on_wakeup in tuple(self._listeners):
            on_wakeup()

    def watch(self, on_wakeup: OnWakeup) -> None:
        self._listeners.add(on_wakeup)
        self._wakeups.start()

    async def unwatch(self, on_wakeup: OnWakeup) -> None:
        self._listeners.discard(on_wakeup)
        if not self._listeners:
            self._wakeups.stop()

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
        compiled = statement.compiled.get(self.name)
        if compiled is None:
            compiled = statement.compiled[self.name] = compile_statement(statement, SQLITE, _binder)
        return compiled

    async def scan(self, sql: str, values: tuple[Any, ...]) -> list[Row]:
        """Reads in a thread until the time limit, or until the caller is cancelled. Raises `Unavailable`."""
        ended = threading.Event()
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._scans, self._scan, sql, values, ended
            )
        finally:
            ended.set()

    def _scan(self, sql: str, values: tuple[Any, ...], ended: threading.Event) -> list[Row]:
        if not hasattr(self._scans_here, "connection"):
            self._scans_here.connection = connect(self.path)
        connection: apsw.Connection = self._scans_here.connection
        deadline = time.monotonic() + _SCAN_SECONDS
        # Not `interrupt()` for cancelled callers: it could come late, and end the next scan of the thread.
        connection.set_progress_handler(lambda: ended.is_set() or time.monotonic() > deadline, 100_000)
        try:
            return connection.execute(sql, values).fetchall()
        except apsw.InterruptError:
            message = "The list took too long; narrow the filters or sort by id"
            raise Unavailable(message) from None

    async def _run_groups(self) -> None:
        try:
            while self._waiting:
                # Wait for one turn of the loop, so that requests read in the same turn join the group.
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
                if not one.is_cancelled:
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
            with suppress(apsw.Error):  # the thread meets the same error, and logs it
                await self._on_disk_thread(CHECKPOINT)

    def _give_up(self, group: list["_Pending"], error: apsw.Error) -> None:
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")
        if not group:  # BEGIN failed: the waiting transactions would meet the same error
            group = list(self._waiting)
            self._waiting.clear()
        for each in group:
            each.failure = Unavailable(f"The database did not take the write ({error.__class__.__name__})")
            each.settle()

    async def _begin(self) -> None:
        """Begins with IMMEDIATE: a transaction that starts with a read can fail at its first write."""
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
        except Exception as failure:  # noqa: BLE001 (passed on to the caller)
            one.failure = failure
            execute("ROLLBACK TO one")
        execute("RELEASE one")


class _Pending:
    """A transaction that waits for its group, with the future of its caller."""

    __slots__ = ("_done", "failure", "result", "work")

    def __init__(self, work: Callable[[Writing], Awaitable[Any]], done: asyncio.Future[Any]) -> None:
        self.work = work
        self._done = done
        self.result: Any = None
        self.failure: Exception | None = None

    @property
    def is_cancelled(self) -> bool:
        """Whether the caller was cancelled before the transaction began."""
        return self._done.done()

    def settle(self) -> None:
        if self._done.done():
            return
        if self.failure is None:
            self._done.set_result(self.result)
        else:
            self._done.set_exception(self.failure)


def connect(path: str) -> apsw.Connection:
    """A connection with the settings of tradepost. Raises `Unavailable`."""
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


def _fold(*arguments: Any) -> str | None:
    """A text without case; a migration defines the same function on PostgreSQL."""
    return None if arguments[0] is None else str(arguments[0]).lower()


def _schema_version(connection: apsw.Connection) -> str | None:
    try:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except apsw.SQLError:
        return None
    return str(row[0]) if row else None


def _binder(sql: str, names: tuple[str, ...], fixed: Mapping[str, Any]) -> Bind:
    """A function that puts named values into positions, a list as one JSON text."""
    if "json_each(" not in sql:
        return positional(sql, names, fixed)
    return lambda values: tuple(
        [_json_list(values[name] if name in values else fixed[name]) for name in names]
    )


def _json_list(value: Any) -> Any:
    return msgspec.json.encode(value).decode() if type(value) is list else value


def _without_waiting(work: Awaitable[Any]) -> Any:
    """Runs a coroutine that awaits only its own statements, which never suspend on SQLite."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as finished:
        return finished.value
    message = "a transaction awaited something other than its own statements"
    raise RuntimeError(message)


class SqliteReading:
    """Reads on the connection of the event loop; scans run in a thread."""

    __slots__ = ("_connection", "_database", "nanoseconds", "statements")

    def __init__(self, database: SqliteDatabase, connection: apsw.Connection) -> None:
        self._database = database
        self._connection = connection
        self.statements = 0
        self.nanoseconds = 0

    async def row(self, statement: Statement, **parameters: Any) -> Row | None:
        start_ns = time.perf_counter_ns()
        sql, bind = self._database.compiled(statement)
        row: Row | None = self._connection.execute(sql, bind(parameters)).fetchone()
        self._count(start_ns)
        return row

    async def rows(self, statement: Statement, **parameters: Any) -> list[Row]:
        start_ns = time.perf_counter_ns()
        sql, bind = self._database.compiled(statement)
        if statement.bounded:
            rows = self._connection.execute(sql, bind(parameters)).fetchall()
        else:
            rows = await self._database.scan(sql, bind(parameters))
        self._count(start_ns)
        return rows

    def _count(self, start_ns: int) -> None:
        self.statements += 1
        self.nanoseconds += time.perf_counter_ns() - start_ns


class SqliteWriting(SqliteReading):
    """One transaction, inside its savepoint."""

    __slots__ = ()
    max_commit_delay_ms = 0  # writers run one after another

    async def rows(self, statement: Statement, **parameters: Any) -> list[Row]:
        start_ns = time.perf_counter_ns()
        sql, bind = self._database.compiled(statement)
        rows = self._connection.execute(sql, bind(parameters)).fetchall()
        self._count(start_ns)
        return rows

    async def run(self, statement: Statement, **parameters: Any) -> int:
        start_ns = time.perf_counter_ns()
        sql, bind = self._database.compiled(statement)
        try:
            self._connection.execute(sql, bind(parameters))
        except apsw.ConstraintError as error:
            raise _violation(error) from error
        self._count(start_ns)
        return self._connection.changes()

    async def many(self, statement: Statement, sets: Iterable[Mapping[str, Any]]) -> None:
        start_ns = time.perf_counter_ns()
        sql, bind = self._database.compiled(statement)
        try:
            self._connection.executemany(sql, [bind(values) for values in sets])
        except apsw.ConstraintError as error:
            raise _violation(error) from error
        self._count(start_ns)


def _violation(error: apsw.ConstraintError) -> Exception:
    unique = _UNIQUE.search(str(error))
    return UniqueViolation(unique[1], unique[2]) if unique else error
