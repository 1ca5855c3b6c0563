"""Logs: one line per entry, as text or JSON, on standard error.

The canonical line of a request bypasses `logging`: lines are collected for a moment and written together.
"""

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec

from tradepost.clock import instant

_encode = msgspec.json.Encoder().encode
_DELAY_SECONDS = 0.02
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


def set_up(form: str, level: str) -> None:
    """Sends all log entries to standard error; `form` is `json` or `text`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    logging.getLogger("uvicorn.access").disabled = True
    logging.getLogger("uvicorn.error").setLevel("WARNING")
    logging.getLogger("alembic").setLevel("WARNING")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": instant(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _encode(line).decode()


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        more = "".join(f" {name}={value!r}" for name, value in vars(record).items() if name not in _STANDARD)
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        at = instant(int(record.created * 1000))
        return f"{at} {record.levelname.lower()} {record.name}: {record.getMessage()}{more}{trace}"


class Line(msgspec.Struct):
    """The canonical line of a request."""

    time: str
    level: str
    message: str
    method: str
    path: str
    route: str
    status: int
    ms: float
    db_ms: float
    statements: int
    bytes: int
    request_id: str
    key: str | None
    client: str


class RequestLog:
    """Writes canonical lines in batches: one write per line would cost as much as reading an item."""

    def __init__(self, form: str, write: Callable[[bytes], object] | None = None) -> None:
        self._form: Callable[[Line], bytes] = _json_line if form == "json" else _text_line
        self._write = write or _write_out
        self._lines: list[Line] = []

    def add(self, line: Line) -> None:
        """Adds a line, to be written within 20 ms."""
        if not self._lines:
            asyncio.get_running_loop().call_later(_DELAY_SECONDS, self.flush)
        self._lines.append(line)

    def flush(self) -> None:
        """Writes the lines that were added since the last write."""
        lines, self._lines = self._lines, []
        if lines:
            self._write(b"".join([self._form(line) for line in lines]))


def now_text() -> str:
    """The present instant as text. The part up to the seconds is formatted once a second only."""
    seconds, ms = divmod(time.time_ns() // 1_000_000, 1000)
    if seconds != _second[0]:
        _second[0], _second[1] = seconds, instant(seconds * 1000)[:-4]
    return f"{_second[1]}{ms:03}Z"


_second: list[Any] = [0, ""]


def _write_out(lines: bytes) -> None:
    sys.stderr.buffer.write(lines)
    sys.stderr.buffer.flush()


def _json_line(line: Line) -> bytes:
    return _encode(line) + b"\n"


def _text_line(line: Line) -> bytes:
    return (
        f"{line.time} {line.level} {line.method} {quote(line.path)} {line.status} {line.ms:.1f}ms"
        f" db={line.db_ms:.1f}ms/{line.statements} {line.bytes}B key={line.key} {line.client}"
        f" {line.request_id}\n"
    ).encode()
