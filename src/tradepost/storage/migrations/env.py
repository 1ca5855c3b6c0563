"""How Alembic reaches a database: the standard library's driver for SQLite, asyncpg for PostgreSQL."""

import asyncio

from alembic import context
from sqlalchemy import Connection, create_engine, event, pool, text
from sqlalchemy.ext.asyncio import create_async_engine

from tradepost.storage.tables import metadata

# Two processes that start at once migrate one after the other.
_MIGRATION_LOCK = 7_201_948_112


def run(connection: Connection) -> None:
    """Runs what is pending, each migration in its own transaction where the engine can."""
    context.configure(connection=connection, target_metadata=metadata)
    with context.begin_transaction():
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
        context.run_migrations()


async def _run_postgres(url: str) -> None:
    engine = create_async_engine(
        url.replace("postgresql://", "postgresql+asyncpg://", 1), poolclass=pool.NullPool
    )
    async with engine.begin() as connection:
        await connection.run_sync(run)
    await engine.dispose()


def _run_sqlite(url: str) -> None:
    engine = create_engine(url, poolclass=pool.NullPool)
    # The driver would commit before each CREATE; a migration is to happen whole.
    event.listen(engine, "connect", lambda raw, _: setattr(raw, "isolation_level", None))
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    with engine.begin() as connection:
        run(connection)
    engine.dispose()


_url: str = context.config.attributes["url"]
if _url.startswith("sqlite"):
    _run_sqlite(_url)
else:
    asyncio.run(_run_postgres(_url))
