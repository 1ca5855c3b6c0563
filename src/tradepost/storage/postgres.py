"""PostgreSQL: a pool, prepared statements, and whole calls tried again when a race was lost.

No session state is ever set, so connections need no reset between uses; nothing relies on session locks or
on the order of sequences.
"""

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

import asyncpg

from tradepost.problems import Conflict, Unavailable
from tradepost.storage import migrations
from tradepost.storage.database import Noticed, Row, UniqueViolation, Writing
from tradepost.storage.lending import Lending
from tradepost.storage.notices import Notices
from tradepost.storage.statement import POSTGRES, Compiled, Statement, compile_statement

T = TypeVar("T")

_TRIES = 10
_STATEMENT_SECONDS = 10.0
_ACQUIRE_SECONDS = 5.0
_MIGRATION_SECONDS = 3600.0
_MIGRATION_LOCK = 7_201_948_112  # two processes that start at once migrate one after the other
_LOST_RACES = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
_OUT_OF_REACH = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.CannotConnectNowError,
    asyncpg.InternalClientError,  # of a connection that was lost a moment ago
)


class _Connection(asyncpg.Connection):
    """A connection that is handed on as it is."""

    def get_reset_query(self) -> str:
        return ""


class PostgresDatabase:
    """One PostgreSQL, any number of processes on any number of machines."""

    name = "postgresql"

    def __init__(self, url: str, pool_size: int = 8) -> None:
        self._url = url
        self._pool_size = pool_size

    async def start(self) -> None:
        try:
            self._pool = await asyncpg.create_pool(
                self._url,
                min_size=1,
                max_size=self._pool_size,
                connection_class=_Connection,
                command_timeout=_STATEMENT_SECONDS,
                statement_cache_size=512,
                max_inactive_connection_lifetime=0,
            )
        except (OSError, asyncpg.PostgresError) as error:
            message = f"PostgreSQL cannot be reached: {error}"
            raise Unavailable(message) from error
        self._lending = Lending(self._pool, self._pool_size, _ACQUIRE_SECONDS)
        self._notices = Notices(self._url, self._lending)

    async def stop(self) -> None:
        await self._notices.stop()
        await self._lending.stop()
        await self._pool.close()

    def reading(self) -> "PostgresReading":
        return PostgresReading(self, self._lending)

    async def write(self, work: Callable[[Writing], Awaitable[T]]) -> T:
        for attempt in range(_TRIES):
            try:
                async with self._lending.lent() as connection, connection.transaction():
                    return await work(PostgresWriting(self, connection))
            except _LOST_RACES:
                await asyncio.sleep(random.uniform(0, 0.005 * 2**attempt))  # noqa: S311 (spreads retries)
            except (*_OUT_OF_REACH, TimeoutError) as error:
                raise _unavailable(error) from error
        message = "Others changed the same items at the same time, again and again; try once more"
        raise Conflict(message)

    def wake(self) -> None:
        self._notices.tell()

    def watch(self, noticed: Noticed) -> None:
        self._notices.watch(noticed)

    async def unwatch(self, noticed: Noticed) -> None:
        await self._notices.unwatch(noticed)

    async def schema_version(self) -> str | None:
        try:
            async with self._lending.lent() as connection:
                return await _schema_version(connection)
        except (*_OUT_OF_REACH, TimeoutError) as error:
            raise _unavailable(error) from error

    async def migrate(self) -> None:
        async with self._lending.lent() as connection, connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _MIGRATION_LOCK)
            since = await _schema_version(connection)
            if since != migrations.head():
                await connection.execute(migrations.script("postgresql", since), timeout=_MIGRATION_SECONDS)

    def compiled(self, statement: Statement) -> Compiled:
        found = statement.compiled.get(self.name)
        if found is None:
            found = statement.compiled[self.name] = compile_statement(statement, POSTGRES)
        return found


class PostgresReading:
    """Reads over whichever connection is free, or over the one of a transaction."""

    __slots__ = ("_connection", "_database", "nanoseconds", "statements")

    def __init__(self, database: PostgresDatabase, connection: Any) -> None:
        self._database = database
        self._connection = connection
        self.statements = 0
        self.nanoseconds = 0

    async def row(self, statement: Statement, **given: Any) -> Row | None:
        sql, bind = self._database.compiled(statement)
        found = await self._asked(self._connection.fetchrow, sql, bind(given))
        return None if found is None else tuple(found)

    async def rows(self, statement: Statement, **given: Any) -> list[Row]:
        sql, bind = self._database.compiled(statement)
        return [tuple(row) for row in await self._asked(self._connection.fetch, sql, bind(given))]

    async def _asked(self, ask: Callable[..., Awaitable[Any]], sql: str, values: tuple[Any, ...]) -> Any:
        began = time.perf_counter_ns()
        try:
            return await ask(sql, *values)
        except (*_OUT_OF_REACH, TimeoutError, asyncpg.TooManyConnectionsError) as error:
            raise _unavailable(error) from error
        finally:
            self.statements += 1
            self.nanoseconds += time.perf_counter_ns() - began


class PostgresWriting(PostgresReading):
    """One transaction on one connection."""

    __slots__ = ()
    late_ms = round(1500 * _STATEMENT_SECONDS)  # none of its few statements may take longer

    async def run(self, statement: Statement, **given: Any) -> int:
        sql, bind = self._database.compiled(statement)
        try:
            status: str = await self._asked(self._connection.execute, sql, bind(given))
        except asyncpg.UniqueViolationError as error:
            raise _violation(error) from error
        return int(status.rpartition(" ")[2])

    async def many(self, statement: Statement, sets: Iterable[Mapping[str, Any]]) -> None:
        sql, bind = self._database.compiled(statement)
        try:
            await self._asked(self._connection.executemany, sql, ([bind(given) for given in sets],))
        except asyncpg.UniqueViolationError as error:
            raise _violation(error) from error


async def _schema_version(connection: Any) -> str | None:
    if await connection.fetchval("SELECT to_regclass('alembic_version')") is None:
        return None
    version: str | None = await connection.fetchval("SELECT version_num FROM alembic_version")
    return version


def _violation(error: asyncpg.UniqueViolationError) -> UniqueViolation:
    """Indexes are named `<table>_<column>_key`, primary keys `<table>_pkey`."""
    column = re.sub(rf"^{error.table_name}_|_key$", "", error.constraint_name or "")
    return UniqueViolation(error.table_name or "", "id" if column == "pkey" else column)


def _unavailable(error: BaseException) -> Unavailable:
    return Unavailable(f"The database did not answer ({error.__class__.__name__})")
