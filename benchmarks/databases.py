"""Databases that live as long as one measurement: a file, or one of its own in a running PostgreSQL."""

import asyncio
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg

_numbers = itertools.count(1)


class Engine(StrEnum):
    SQLITE = "sqlite"
    POSTGRES = "postgres"


def unavailable(engine: Engine) -> str | None:
    """Why nothing can be measured on this engine here; None if it can."""
    if engine is Engine.SQLITE:
        return None
    try:
        asyncio.run(_run_on_postgres("SELECT 1"))
    except (OSError, asyncpg.PostgresError) as error:
        return f"no PostgreSQL at {_postgres_url()} ({error}); name one in TRADEPOST_BENCH_POSTGRES_URL"
    return None


@contextmanager
def scratch(engine: Engine, folder: Path) -> Iterator[str]:
    """The URL of a new and empty database."""
    name = f"tradepost_bench_{os.getpid()}_{next(_numbers)}"
    if engine is Engine.SQLITE:
        yield f"sqlite:///{folder.absolute() / name}.db"
        return
    asyncio.run(_run_on_postgres(f"CREATE DATABASE {name}"))
    try:
        yield urlsplit(_postgres_url())._replace(path=f"/{name}").geturl()
    finally:
        asyncio.run(_run_on_postgres(f"DROP DATABASE {name} WITH (FORCE)"))


def analyze(engine: Engine, url: str) -> None:
    """What PostgreSQL does by itself some time after so much was loaded, and plans badly without."""
    if engine is Engine.POSTGRES:
        asyncio.run(_run_on_postgres("ANALYZE", url))


def vacuum(engine: Engine, url: str) -> None:
    """What autovacuum does within a minute, unless it is off; at rest, so that statistics show no rush."""
    if engine is Engine.POSTGRES:
        asyncio.run(_run_on_postgres("VACUUM ANALYZE", url))


def _postgres_url() -> str:
    return os.environ.get("TRADEPOST_BENCH_POSTGRES_URL", "postgresql://postgres@127.0.0.1:5432/postgres")


async def _run_on_postgres(statement: str, url: str | None = None) -> None:
    connection = await asyncpg.connect(url or _postgres_url(), timeout=5)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
