"""The database: reachable, migrated, writable, and configured to keep acknowledged writes."""

import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

from tradepost import assembly
from tradepost.cli.checkup import machine
from tradepost.cli.checkup.finding import Finding, fail, ok, warn
from tradepost.cli.checkup.webhooks import webhooks
from tradepost.clock import Clock, parse_instant
from tradepost.problems import Problem
from tradepost.settings import Settings
from tradepost.storage.database import Database, Row, Writing
from tradepost.storage.migrations import head
from tradepost.storage.statement import Statement
from tradepost.storage.statements import checkup, counts, references

_OLDEST_POSTGRES = 13_00_00  # pg_current_xact_id
_RESERVED = 3  # connections that PostgreSQL reserves for its superuser
_SKEW_MS = 2_000
_FULL_SYNC = 2


class _WriteTested(Exception):
    """Ends the write test, so that it is rolled back."""


async def store(settings: Settings) -> AsyncIterator[Finding]:
    """The findings about the database."""
    if settings.database_file:
        usable, findings = _file(settings.database_file)
        for finding in findings:
            yield finding
        if not usable:
            return
    database = assembly.database(settings)
    try:
        await database.start()
    except Problem as problem:
        yield fail(problem.detail, "is it running, and is TRADEPOST_DATABASE_URL right?")
        return
    yield ok(f"the database answers: {_shown(settings.database_url)}")
    try:
        async for finding in _opened(database, settings):
            yield finding
    finally:
        await database.stop()


async def _opened(database: Database, settings: Settings) -> AsyncIterator[Finding]:
    engine = _postgres if database.name == "postgresql" else _sqlite
    async for finding in engine(database, settings):
        yield finding
    version = await database.schema_version()
    yield _schema(version)
    if version == head():
        yield await _written(database)
        yield await _keys(database)
        yield await _ahead(database)
        async for finding in webhooks(database, settings):
            yield finding


def _file(name: str) -> tuple[bool, list[Finding]]:
    """Whether the file of an SQLite database can be opened, and findings about it. Never creates it."""
    path = Path(name).absolute()
    directory = path.parent
    if not directory.is_dir():
        return False, [fail(f"there is no folder {directory}", "create it, or change TRADEPOST_DATABASE_URL")]
    if not os.access(directory, os.W_OK):
        return False, [fail(f"{directory} is not writable", "SQLite stores its journal there")]
    if not path.exists():
        missing = warn(
            f"there is no database at {path}", "`tradepost serve` or `tradepost migrate` creates it"
        )
        return False, [missing, *machine.disk(str(directory), 0)]
    if not os.access(path, os.W_OK):
        return False, [fail(f"{path} is not writable", "correct its owner or mode")]
    return True, [*machine.disk(str(directory), path.stat().st_size), machine.write_ahead_log(path)]


async def _sqlite(database: Database, settings: Settings) -> AsyncIterator[Finding]:
    del settings
    journal, synchronous = await _row(database, checkup.SETTINGS)
    observed = f"journal mode {journal}, synchronous {synchronous}"
    if journal != "wal":
        yield fail(observed, "the file system does not support write-ahead logging: use a local one")
    elif synchronous < _FULL_SYNC:
        yield warn(observed, "a power cut may lose acknowledged writes")
    else:
        yield ok(observed)


async def _postgres(database: Database, settings: Settings) -> AsyncIterator[Finding]:
    row = await _row(database, checkup.SETTINGS)
    number, version, commit, fsync, pages, most, used, now_ms = row
    if int(number) < _OLDEST_POSTGRES:
        yield fail(f"PostgreSQL {version}", "tradepost needs 13 or newer")
    else:
        yield ok(f"PostgreSQL {version}")
    durability = f"synchronous_commit {commit}, fsync {fsync}, full_page_writes {pages}"
    if commit == "off" or "off" in (fsync, pages):
        yield warn(durability, "a crash may lose acknowledged writes; turn them on")
    else:
        yield ok(durability)
    free = int(most) - _RESERVED - int(used)
    connections = f"{free} of {most} connections are free; a process uses up to {settings.database_pool}"
    if free < settings.database_pool:
        yield warn(connections, "raise max_connections or lower TRADEPOST_DATABASE_POOL")
    else:
        yield ok(connections)
    skew_ms = now_ms - Clock().now_ms()
    if abs(skew_ms) > _SKEW_MS:
        yield warn(f"PostgreSQL's clock differs from ours by {skew_ms / 1000:+.1f} s", "run NTP on both")


def _schema(version: str | None) -> Finding:
    if version == head():
        return ok(f"the schema is at {version}")
    if version is None or version < head():
        return fail(f"the schema is at {version or 'none'}, not {head()}", "run `tradepost migrate`")
    return fail(f"the schema is at {version}, but this program knows {head()}", "update tradepost")


async def _written(database: Database) -> Finding:
    """Tests a write and its rollback."""
    mark = {"kind": "doctor", "reference": secrets.token_hex(8), "entity_id": ""}

    async def work(tx: Writing) -> None:
        await tx.run(references.ADD, **mark)
        raise _WriteTested

    try:
        await database.write(work)
    except _WriteTested:
        pass
    except Problem as problem:
        return fail("a test write failed", problem.detail)
    except Exception as error:  # noqa: BLE001 (any failure of a driver becomes a finding)
        return fail("a test write failed", str(error))
    reading = database.reading()
    remaining = await reading.rows(references.KNOWN, kind=mark["kind"], references=[mark["reference"]])
    return (
        fail("a test write was not rolled back", "please report this")
        if remaining
        else ok("writes work, and roll back")
    )


async def _keys(database: Database) -> Finding:
    (count,) = await _row(database, counts.KEYS)
    if not count:
        return warn("there is no API key", "create one with `tradepost keys create`")
    return ok(f"{count} API key{'s' if count > 1 else ''}")


async def _ahead(database: Database) -> Finding:
    row = await database.reading().row(checkup.NEWEST_EVENT)
    if row is not None and parse_instant(row[0]) > Clock().now_ms() + _SKEW_MS:
        return warn(f"the newest event, of {row[0]}, is in the future", "the clock is wrong, or was")
    return ok(f"the newest event is of {row[0]}" if row else "there are no events yet")


async def _row(database: Database, statement: Statement) -> Row:
    return await database.reading().row(statement) or ()


def _shown(url: str) -> str:
    """A database URL without its password."""
    parts = urlsplit(url)
    password = f":{parts.password}@" if parts.password else ""
    return url.replace(password, ":…@") if password else url
