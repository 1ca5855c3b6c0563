"""The database: reachable, of our schema, writable, and set up so that what was acknowledged is kept."""

import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

from tradepost import assembly
from tradepost.cli.checkup import machine
from tradepost.cli.checkup.finding import Finding, fail, ok, warn
from tradepost.cli.checkup.webhooks import webhooks
from tradepost.clock import Clock, instant, parse_instant
from tradepost.problems import Problem
from tradepost.settings import Settings
from tradepost.storage.database import Database, Row, Writing
from tradepost.storage.migrations import head
from tradepost.storage.statement import Statement
from tradepost.storage.statements import checkup, counts, references

_OLDEST_POSTGRES = 13_00_00  # pg_current_xact_id
_RESERVED = 3  # connections that PostgreSQL keeps for its superuser
_SKEW_MS = 2_000
_FULL_SYNC = 2


class _Undone(Exception):
    """Ends the write test, so that nothing of it stays."""


async def store(found: Settings) -> AsyncIterator[Finding]:
    """All about the database."""
    if found.database_file:
        usable, findings = _file(found.database_file)
        for finding in findings:
            yield finding
        if not usable:
            return
    database = assembly.database(found)
    try:
        await database.start()
    except Problem as problem:
        yield fail(problem.detail, "is it running, and TRADEPOST_DATABASE_URL right?")
        return
    yield ok(f"the database answers: {_shown(found.database_url)}")
    try:
        async for finding in _opened(database, found):
            yield finding
    finally:
        await database.stop()


async def _opened(database: Database, found: Settings) -> AsyncIterator[Finding]:
    engine = _postgres if database.name == "postgresql" else _sqlite
    async for finding in engine(database, found):
        yield finding
    version = await database.schema_version()
    yield _schema(version)
    if version == head():
        yield await _written(database)
        yield await _keys(database)
        yield await _ahead(database)
        async for finding in webhooks(database, found):
            yield finding


def _file(name: str) -> tuple[bool, list[Finding]]:
    """The file of an embedded database, without making it; and whether it can be opened."""
    path = Path(name).absolute()
    directory = path.parent
    if not directory.is_dir():
        return False, [fail(f"there is no folder {directory}", "make it, or change TRADEPOST_DATABASE_URL")]
    if not os.access(directory, os.W_OK):
        return False, [fail(f"{directory} cannot be written", "SQLite keeps its journal beside the database")]
    if not path.exists():
        missing = warn(f"there is no database at {path}", "`tradepost serve` or `tradepost migrate` makes it")
        return False, [missing, *machine.disk(str(directory), 0)]
    if not os.access(path, os.W_OK):
        return False, [fail(f"{path} cannot be written", "give its owner or its mode back")]
    return True, [*machine.disk(str(directory), path.stat().st_size), machine.write_ahead_log(path)]


async def _sqlite(database: Database, found: Settings) -> AsyncIterator[Finding]:
    del found
    journal, synchronous = await _row(database, checkup.SETTINGS)
    seen = f"journal mode {journal}, synchronous {synchronous}"
    if journal != "wal":
        yield fail(seen, "the file system does not allow write-ahead logging: use a local one")
    elif synchronous < _FULL_SYNC:
        yield warn(seen, "a power cut may lose acknowledged writes")
    else:
        yield ok(seen)


async def _postgres(database: Database, found: Settings) -> AsyncIterator[Finding]:
    row = await _row(database, checkup.SETTINGS)
    number, version, commit, fsync, pages, most, used, now = row
    if int(number) < _OLDEST_POSTGRES:
        yield fail(f"PostgreSQL {version}", "tradepost needs 13 or newer")
    else:
        yield ok(f"PostgreSQL {version}")
    kept = f"synchronous_commit {commit}, fsync {fsync}, full_page_writes {pages}"
    if commit == "off" or "off" in (fsync, pages):
        yield warn(kept, "a crash may lose acknowledged orders; turn them on")
    else:
        yield ok(kept)
    left = int(most) - _RESERVED - int(used)
    connections = f"{left} of {most} connections are free, a process takes up to {found.database_pool}"
    if left < found.database_pool:
        yield warn(connections, "raise max_connections or lower TRADEPOST_DATABASE_POOL")
    else:
        yield ok(connections)
    skew = now - Clock().now()
    if abs(skew) > _SKEW_MS:
        yield warn(f"PostgreSQL's clock is {skew / 1000:+.1f} s off ours", "keep both set by NTP")


def _schema(version: str | None) -> Finding:
    if version == head():
        return ok(f"the schema is at {version}")
    if version is None or version < head():
        return fail(f"the schema is at {version or 'none'}, not {head()}", "run `tradepost migrate`")
    return fail(f"the schema is at {version}, this program knows {head()}", "update tradepost")


async def _written(database: Database) -> Finding:
    """A write that is rolled back: it has to work, and to leave nothing."""
    mark = {"kind": "doctor", "reference": secrets.token_hex(8), "entity_id": ""}

    async def work(tx: Writing) -> None:
        await tx.run(references.ADD, **mark)
        raise _Undone

    try:
        await database.write(work)
    except _Undone:
        pass
    except Problem as problem:
        return fail("a test write failed", problem.detail)
    except Exception as error:  # noqa: BLE001 (whatever a driver raises, the doctor says it)
        return fail("a test write failed", str(error))
    reading = database.reading()
    left = await reading.rows(references.KNOWN, kind=mark["kind"], references=[mark["reference"]])
    return fail("a test write was not undone", "report this") if left else ok("writes work, and roll back")


async def _keys(database: Database) -> Finding:
    (count,) = await _row(database, counts.KEYS)
    if not count:
        return warn("there is no API key", "`tradepost keys create` makes one")
    return ok(f"{count} API key{'s' if count > 1 else ''}")


async def _ahead(database: Database) -> Finding:
    row = await database.reading().row(checkup.NEWEST_EVENT)
    if row is not None and parse_instant(row[0]) > Clock().now() + _SKEW_MS:
        return warn(f"the newest event is of {row[0]}, the future", "the clock was wrong, then or now")
    return ok(f"the newest event is of {row[0]}" if row else f"no events yet, at {instant(Clock().now())}")


async def _row(database: Database, statement: Statement) -> Row:
    return await database.reading().row(statement) or ()


def _shown(url: str) -> str:
    """A database's address without its password."""
    parts = urlsplit(url)
    password = f":{parts.password}@" if parts.password else ""
    return url.replace(password, ":…@") if password else url
