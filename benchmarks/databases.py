"""Databases that live as long as one measurement: a file, or one of its own in a running PostgreSQL."""

import asyncio
import itertools
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
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
def scratch(engine: Engine, folder: Path, copy_of: str | None = None) -> Iterator[str]:
    """The URL of a new database: an empty one, or a copy of one that has no connections."""
    name = f"tradepost_bench_{os.getpid()}_{next(_numbers)}"
    if engine is Engine.SQLITE:
        url = f"sqlite:///{folder.absolute() / name}.db"
        if copy_of:
            _copy_file(copy_of, url)
        yield url
        return
    template = f" TEMPLATE {urlsplit(copy_of).path[1:]}" if copy_of else ""
    asyncio.run(_run_on_postgres(f"CREATE DATABASE {name}{template}"))
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


def _copy_file(source: str, target: str) -> None:
    files = [url.removeprefix("sqlite:///") for url in (source, target)]
    with closing(sqlite3.connect(files[0])) as one, closing(sqlite3.connect(files[1])) as other:
        one.backup(other)


def _postgres_url() -> str:
    return os.environ.get("TRADEPOST_BENCH_POSTGRES_URL", "postgresql://postgres@127.0.0.1:5432/postgres")


async def _run_on_postgres(statement: str, url: str | None = None) -> None:
    connection = await asyncpg.connect(url or _postgres_url(), timeout=5)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
