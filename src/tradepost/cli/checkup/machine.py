"""The machine: Python, SQLite's library, the clock, and the port to listen on."""

import errno
import os
import platform
import socket
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import apsw

from tradepost.cli.checkup.finding import Finding, fail, ok, warn
from tradepost.clock import Clock, instant
from tradepost.settings import Settings

_PYTHON = (3, 11)
_SQLITE = (3, 35)  # RETURNING
_NOT_BEFORE_MS = 1_767_225_600_000  # 2026-01-01: this program is younger
_NOT_AFTER = 2100
_SECONDS = 2


def python() -> Iterator[Finding]:
    """The language it runs in."""
    seen = f"Python {platform.python_version()}"
    if sys.version_info < _PYTHON:
        yield fail(seen, "tradepost needs 3.11 or newer")
    else:
        yield ok(seen)


def sqlite_library() -> Iterator[Finding]:
    """The library of the embedded engine."""
    version = apsw.sqlite_lib_version()
    seen = f"SQLite {version}"
    if tuple(map(int, version.split(".")[:2])) < _SQLITE:
        yield fail(seen, "tradepost needs 3.35 or newer: install the wheel of apsw anew")
    else:
        yield ok(seen)


def clock() -> Iterator[Finding]:
    """Whether the clock can be right: ids and events carry its time."""
    now = Clock().now()
    seen = f"the clock says {instant(now)}"
    if now < _NOT_BEFORE_MS or datetime.fromtimestamp(now / 1000, UTC).year >= _NOT_AFTER:
        yield fail(seen, "that cannot be; set it (and keep it set by NTP)")
    else:
        yield ok(seen)


def port(found: Settings) -> Iterator[Finding]:
    """Whether the service could listen."""
    where = f"{found.host}:{found.port}"
    try:
        with socket.socket(socket.AF_INET6 if ":" in found.host else socket.AF_INET) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind((found.host, found.port))
            tried.listen()
        yield ok(f"{where} is free to listen on")
    except OSError as error:
        yield _taken(found, where, error)


def _taken(found: Settings, where: str, error: OSError) -> Finding:
    if error.errno == errno.EADDRINUSE:
        if _answers(found):
            return ok(f"{where}: a tradepost is serving there")
        return fail(f"{where} is taken by another program", "stop it, or choose another TRADEPOST_PORT")
    if error.errno == errno.EACCES:
        return fail(f"{where} is not ours to listen on", "choose a TRADEPOST_PORT above 1023")
    return fail(f"{where} cannot be listened on", f"{os.strerror(error.errno or 0)}; see TRADEPOST_HOST")


def _answers(found: Settings) -> bool:
    """Whether what listens there answers as this program does."""
    connection = HTTPConnection(found.host, found.port, timeout=_SECONDS)
    try:
        connection.request("GET", "/livez")
        response = connection.getresponse()
        return response.status == HTTPStatus.OK and response.headers["X-Request-Id"] is not None
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def disk(directory: str, needed: int) -> Iterator[Finding]:
    """Whether there is room beside the database, `needed` bytes being all that it is now."""
    state = os.statvfs(directory)
    free = state.f_bavail * state.f_frsize
    seen = f"{_size(free)} free on the disk of the database"
    if free < _FULL:
        yield fail(seen, "make room; writes are about to fail")
    elif free < max(_LITTLE, needed):
        yield warn(seen, "make room: growing, backups and VACUUM need some")
    else:
        yield ok(seen)


_FULL, _LITTLE = 64 * 2**20, 2**30


def write_ahead_log(database: Path) -> Finding:
    """Whether SQLite's write-ahead log restarts; one that does has about 64 MiB."""
    log = Path(f"{database}-wal")
    size = log.stat().st_size if log.exists() else 0
    seen = f"the write-ahead log has {_size(size)}"
    if size <= _LONG_LOG:
        return ok(seen)
    advice = "look for a reader that stays open, such as a backup or a sqlite3 shell"
    return warn(seen, f"{advice} (`lsof {database}`); the log shrinks once it has ended")


_LONG_LOG = 500 * 10**6


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
