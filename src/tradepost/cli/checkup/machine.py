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
_NOT_BEFORE_MS = 1_767_225_600_000  # 2026-01-01: older than any release of this program
_LAST_YEAR = 2100
_TIMEOUT_SECONDS = 2


def python() -> Iterator[Finding]:
    """The version of Python."""
    observed = f"Python {platform.python_version()}"
    if sys.version_info < _PYTHON:
        yield fail(observed, "tradepost needs 3.11 or newer")
    else:
        yield ok(observed)


def sqlite_library() -> Iterator[Finding]:
    """The version of the SQLite library."""
    version = apsw.sqlite_lib_version()
    observed = f"SQLite {version}"
    if tuple(map(int, version.split(".")[:2])) < _SQLITE:
        yield fail(observed, "tradepost needs 3.35 or newer: reinstall the wheel of apsw")
    else:
        yield ok(observed)


def clock() -> Iterator[Finding]:
    """Whether the clock is plausible: ids and events contain its time."""
    now_ms = Clock().now_ms()
    observed = f"the clock says {instant(now_ms)}"
    if now_ms < _NOT_BEFORE_MS or datetime.fromtimestamp(now_ms / 1000, UTC).year >= _LAST_YEAR:
        yield fail(observed, "it is wrong; set it, and run NTP")
    else:
        yield ok(observed)


def port(settings: Settings) -> Iterator[Finding]:
    """Whether the service can listen on its port."""
    where = f"{settings.host}:{settings.port}"
    try:
        with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            attempt.bind((settings.host, settings.port))
            attempt.listen()
        yield ok(f"{where} is free")
    except OSError as error:
        yield _taken(settings, where, error)


def _taken(settings: Settings, where: str, error: OSError) -> Finding:
    if error.errno == errno.EADDRINUSE:
        if _answers(settings):
            return ok(f"{where}: tradepost is already serving there")
        return fail(f"{where} is taken by another program", "stop it, or set another TRADEPOST_PORT")
    if error.errno == errno.EACCES:
        return fail(f"permission denied to listen on {where}", "set a TRADEPOST_PORT above 1023")
    return fail(f"cannot listen on {where}", f"{os.strerror(error.errno or 0)}; see TRADEPOST_HOST")


def _answers(settings: Settings) -> bool:
    """Whether the program that listens there is tradepost."""
    connection = HTTPConnection(settings.host, settings.port, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/livez")
        response = connection.getresponse()
        return response.status == HTTPStatus.OK and response.headers["X-Request-Id"] is not None
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def disk(directory: str, database_bytes: int) -> Iterator[Finding]:
    """Whether the disk has space left for the database to double, as a backup needs."""
    state = os.statvfs(directory)
    free_bytes = state.f_bavail * state.f_frsize
    observed = f"{_size(free_bytes)} free on the disk of the database"
    if free_bytes < _FULL_BYTES:
        yield fail(observed, "free some space; writes are about to fail")
    elif free_bytes < max(_LOW_BYTES, database_bytes):
        yield warn(observed, "free some space: growth, backups and VACUUM need it")
    else:
        yield ok(observed)


_FULL_BYTES, _LOW_BYTES = 64 * 2**20, 2**30


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
