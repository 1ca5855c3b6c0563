"""The engine for a URL, and a session per request."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy import Connection, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

_DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg"}


def open_engine(url: str) -> AsyncEngine:
    named = make_url(url)
    engine = create_async_engine(
        named.set(drivername=_DRIVERS[named.drivername]), pool_size=20, max_overflow=0
    )
    if named.drivername == "sqlite":
        event.listen(engine.sync_engine, "connect", _set_up_sqlite)
        event.listen(engine.sync_engine, "begin", _begin_on_sqlite)
    return engine


class Sessions:
    """Those that write take SQLite's write lock at once; to upgrade a read transaction to it can fail."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.reading = async_sessionmaker(engine, expire_on_commit=False)
        writing_engine = engine.execution_options(sqlite_begin="BEGIN IMMEDIATE")
        self.writing = async_sessionmaker(writing_engine, expire_on_commit=False)


async def get_session(request: Request) -> AsyncIterator[AsyncSession]:
    sessions: Sessions = request.app.state.sessions
    async with sessions.reading() if request.method == "GET" else sessions.writing() as session:
        yield session


SessionDependency = Annotated[AsyncSession, Depends(get_session)]


def _set_up_sqlite(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "busy_timeout = 30000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_on_sqlite(connection: Connection) -> None:
    if statement := connection.get_execution_options().get("sqlite_begin"):
        connection.exec_driver_sql(statement)
