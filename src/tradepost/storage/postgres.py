"""PostgreSQL: a pool, prepared statements, and retries of whole transactions after lost races.

No session state is ever set, so connections need no reset between uses. Nothing relies on session locks or on
the order of sequences.
"""

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import asyncpg

from tradepost.problems import Conflict, Unavailable
from tradepost.storage import migrations
from tradepost.storage.connection_pool import Connection, ConnectionPool
from tradepost.storage.database import OnWakeup, Row, UniqueViolation, Writing
from tradepost.storage.postgres_wakeups import PostgresWakeups
from tradepost.storage.statement import POSTGRES, Compiled, Statement, compile_statement

T = TypeVar("T")

_TRIES = 10
_STATEMENT_SECONDS = 10.0
_COMMIT_SECONDS = 10.0
_ACQUIRE_SECONDS = 5.0
_MIGRATION_SECONDS = 3600.0
_MIGRATION_LOCK = 7_201_948_112  # processes that start at the same time migrate one after the other
_LOST_RACES = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
# Failures that a later attempt may not meet. The numbers are SQLSTATEs or their classes (PostgreSQL,
# appendix A).
_UNAVAILABLE = (
    OSError,  # also TimeoutError
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # on a connection that was just lost
    asyncpg.PostgresConnectionError,  # 08
    asyncpg.InvalidCachedStatementError,  # 0A000, after a migration
    asyncpg.ReadOnlySQLTransactionError,  # 25006, from a primary that has become a standby
    asyncpg.IdleInTransactionSessionTimeoutError,  # 25P03
    asyncpg.TransactionTimeoutError,  # 25P04
    asyncpg.InvalidSQLStatementNameError,  # 26000, from a pooler that has changed the session
    asyncpg.StatementCompletionUnknownError,  # 40003
    asyncpg.InsufficientResourcesError,  # 53
    asyncpg.LockNotAvailableError,  # 55P03
    asyncpg.OperatorInterventionError,  # 57
    asyncpg.PostgresSystemError,  # 58
)


class PostgresDatabase:
    """A PostgreSQL database, for any number of processes on any number of machines."""

    name = "postgresql"

    def __init__(self, url: str, pool_size: int = 8) -> None:
        self._url = url
        self._pool_size = pool_size
        self._commits: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._pool = ConnectionPool(self._connect, self._pool_size, _ACQUIRE_SECONDS)
        self._wakeups = PostgresWakeups(self._url, self._pool)
        try:
            self._pool.release(await self._pool.acquire(), reusable=True)
        except OSError as error:
            message = f"PostgreSQL cannot be reached: {error}"
            raise Unavailable(message) from error

    async def stop(self) -> None:
        await self._wakeups.stop()
        if self._commits:
            await asyncio.wait(self._commits)
        await self._pool.close()

    def reading(self) -> "PostgresReading":
        return PostgresReading(self, self._pool)

    async def write(self, work: Callable[[Writing], Awaitable[T]]) -> T:
        for attempt in range(_TRIES):
            try:
                return await self._transaction(lambda connection: work(PostgresWriting(self, connection)))
            except _LOST_RACES:
                await asyncio.sleep(random.uniform(0, 0.005 * 2**attempt))  # noqa: S311 (spreads retries)
            except _UNAVAILABLE as error:
                raise _unavailable(error) from error
        message = "Too many concurrent changes to the same items; retry"
        raise Conflict(message)

    def wake(self) -> None:
        self._wakeups.wake()

    def watch(self, on_wakeup: OnWakeup) -> None:
        self._wakeups.watch(on_wakeup)

    async def unwatch(self, on_wakeup: OnWakeup) -> None:
        await self._wakeups.unwatch(on_wakeup)

    async def schema_version(self) -> str | None:
        try:
            return await _schema_version(self._pool)
        except _UNAVAILABLE as error:
            raise _unavailable(error) from error

    async def migrate(self) -> None:
        async def work(connection: Connection) -> None:
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _MIGRATION_LOCK)
            since = await _schema_version(connection)
            if since != migrations.head():
                await connection.execute(migrations.script("postgresql", since), timeout=_MIGRATION_SECONDS)

        await self._transaction(work)

    def compiled(self, statement: Statement) -> Compiled:
        compiled = statement.compiled.get(self.name)
        if compiled is None:
            compiled = statement.compiled[self.name] = compile_statement(statement, POSTGRES)
        return compiled

    async def _connect(self) -> Connection:
        """A new connection. Raises `OSError`, also if PostgreSQL answers but rejects the connection."""
        try:
            return await asyncpg.connect(
                self._url,
                timeout=_ACQUIRE_SECONDS,
                command_timeout=_STATEMENT_SECONDS,
                statement_cache_size=512,
            )
        except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
            raise ConnectionError(str(error)) from error

    async def _transaction(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Runs `work` in a transaction on a connection that is released when the transaction has ended."""
        connection = await self._pool.acquire()
        try:
            await connection.execute("BEGIN")
            result = await work(connection)
        except BaseException as error:
            await self._roll_back(connection, error)
            raise
        # From here on, cancelling the caller no longer ends the transaction.
        commit = asyncio.create_task(self._commit(connection))
        self._commits.add(commit)
        commit.add_done_callback(self._commits.discard)
        await asyncio.shield(commit)
        return result

    async def _roll_back(self, connection: Connection, error: BaseException) -> None:
        """Rolls a transaction back, by closing the connection if its state does not permit ROLLBACK."""
        reusable = False
        try:
            if isinstance(error, Exception) and not isinstance(error, (Unavailable, *_UNAVAILABLE)):
                with suppress(*_UNAVAILABLE):
                    await connection.execute("ROLLBACK")
                    reusable = True
        finally:
            self._pool.release(connection, reusable=reusable)

    async def _commit(self, connection: Connection) -> None:
        """Commits and releases the connection.

        COMMIT is never cancelled: if it waits for a standby, PostgreSQL would end the wait and make a change
        visible that a failover may lose. After the time limit the connection is closed instead; COMMIT goes
        on.
        """
        deadline = asyncio.get_running_loop().call_later(_COMMIT_SECONDS, connection.terminate)
        reusable = False
        try:
            # asyncpg cancels what exceeds the timeout: this one is never reached.
            await connection.execute("COMMIT", timeout=2 * _COMMIT_SECONDS)
            reusable = True
        except _LOST_RACES:
            reusable = True
            raise
        except _UNAVAILABLE as error:
            message = "The database did not confirm the change: it may have been made, or may still be made"
            raise Unavailable(message) from error
        finally:
            deadline.cancel()
            self._pool.release(connection, reusable=reusable)


class PostgresReading:
    """Reads over any free connection, or over the connection of a transaction."""

    __slots__ = ("_connection", "_database", "nanoseconds", "statements")

    def __init__(self, database: PostgresDatabase, connection: Any) -> None:
        self._database = database
        self._connection = connection
        self.statements = 0
        self.nanoseconds = 0

    async def row(self, statement: Statement, **parameters: Any) -> Row | None:
        sql, bind = self._database.compiled(statement)
        row = await self._execute(self._connection.fetchrow, sql, bind(parameters))
        return None if row is None else tuple(row)

    async def rows(self, statement: Statement, **parameters: Any) -> list[Row]:
        sql, bind = self._database.compiled(statement)
        return [tuple(row) for row in await self._execute(self._connection.fetch, sql, bind(parameters))]

    async def _execute(self, method: Callable[..., Awaitable[Any]], sql: str, values: tuple[Any, ...]) -> Any:
        start_ns = time.perf_counter_ns()
        try:
            return await method(sql, *values)
        except _UNAVAILABLE as error:
            raise _unavailable(error) from error
        finally:
            self.statements += 1
            self.nanoseconds += time.perf_counter_ns() - start_ns


class PostgresWriting(PostgresReading):
    """One transaction on one connection."""

    __slots__ = ()
    max_commit_delay_ms = round(1500 * _STATEMENT_SECONDS)  # without the wait of COMMIT for a standby

    async def run(self, statement: Statement, **parameters: Any) -> int:
        sql, bind = self._database.compiled(statement)
        try:
            status: str = await self._execute(self._connection.execute, sql, bind(parameters))
        except asyncpg.UniqueViolationError as error:
            raise _violation(error) from error
        return int(status.rpartition(" ")[2])

    async def many(self, statement: Statement, sets: Iterable[Mapping[str, Any]]) -> None:
        sql, bind = self._database.compiled(statement)
        try:
            await self._execute(self._connection.executemany, sql, ([bind(values) for values in sets],))
        except asyncpg.UniqueViolationError as error:
            raise _violation(error) from error


async def _schema_version(connection: Any) -> str | None:
    (table,) = await connection.fetchrow("SELECT to_regclass('alembic_version')")
    if table is None:
        return None
    version: str | None
    (version,) = await connection.fetchrow("SELECT version_num FROM alembic_version")
    return version


def _violation(error: asyncpg.UniqueViolationError) -> UniqueViolation:
    """The violation, by its index: `<table>_<column>_key`, or `<table>_pkey` for a primary key."""
    column = re.sub(rf"^{error.table_name}_|_key$", "", error.constraint_name or "")
    return UniqueViolation(error.table_name or "", "id" if column == "pkey" else column)


def _unavailable(error: BaseException) -> Unavailable:
    return Unavailable(f"The database did not answer ({type(error.__cause__ or error).__name__})")
