"""Logs: one line an occurrence, as text or JSON, on standard error.

The canonical line of a request does not go through `logging`: it is encoded at once and written with the
others of the same turn of the event loop.
"""

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec

from tradepost.clock import instant

_encode = msgspec.json.Encoder().encode
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


def set_up(form: str, level: str) -> None:
    """Sends everything that is logged to standard error, in one form."""
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
        more = "".join(f" {name}={value}" for name, value in vars(record).items() if name not in _STANDARD)
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
    """Writes the canonical lines, those of one turn of the loop together."""

    def __init__(self, form: str, write: Callable[[str], object] | None = None) -> None:
        self._form: Callable[[Line], str] = _json_line if form == "json" else _text_line
        self._write = write or sys.stderr.write
        self._lines: list[Line] = []

    def add(self, line: Line) -> None:
        """Takes a line; it is written before the loop waits again."""
        if not self._lines:
            asyncio.get_running_loop().call_soon(self.flush)
        self._lines.append(line)

    def flush(self) -> None:
        """Writes what is waiting."""
        lines, self._lines = self._lines, []
        self._write("".join([self._form(line) for line in lines]))


def now_text() -> str:
    """The present instant; made once a millisecond, however many lines ask."""
    ms = time.time_ns() // 1_000_000
    if ms != _now[0]:
        _now[0], _now[1] = ms, instant(ms)
    return str(_now[1])


_now: list[Any] = [0, ""]


def _json_line(line: Line) -> str:
    return _encode(line).decode() + "\n"


def _text_line(line: Line) -> str:
    return (
        f"{line.time} {line.level} {line.method} {line.path} {line.status} {line.ms:.1f}ms"
        f" db={line.db_ms:.1f}ms/{line.statements} {line.bytes}B key={line.key} {line.client}"
        f" {line.request_id}\n"
    )
