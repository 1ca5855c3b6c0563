"""Instants: integers of milliseconds since 1970 internally, RFC 3339 text in UTC with `Z` externally.

All such texts have the same width, so that comparing texts compares instants, in Python and in both engines.
"""

import re
import time
from datetime import UTC, datetime
from email.utils import formatdate
from functools import lru_cache

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_DATE_LENGTH = len("2026-11-20")
_FIRST_YEAR, _LAST_YEAR = 1970, 9999


class Clock:
    """The machine's clock. Code that needs the time takes a clock, so that tests can pass another one."""

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000


def instant(ms: int) -> str:
    """`1763712930123` → `2025-11-21T08:15:30.123Z`."""
    return f"{_second(ms // 1000)}.{ms % 1000:03}Z"


@lru_cache(256)
def _second(seconds: int) -> str:
    """The part of an instant that all instants in a second share."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def parse_instant(text: str) -> int:
    """Milliseconds since 1970 of an RFC 3339 date-time, or of a date (midnight UTC). Raises `ValueError`."""
    if len(text) == _DATE_LENGTH:
        text += "T00:00:00Z"
    try:
        moment = datetime.fromisoformat(text.upper()) if _RFC3339.fullmatch(text) else None
    except ValueError:  # there is no such day, hour or offset
        moment = None
    if moment is None:
        message = "must be an RFC 3339 date-time such as 2026-11-20T08:15:30.123Z"
        raise ValueError(message)
    if not _FIRST_YEAR <= moment.year < _LAST_YEAR:
        message = f"must be from the year {_FIRST_YEAR} to {_LAST_YEAR - 1}"
        raise ValueError(message)
    return int(moment.timestamp()) * 1000 + moment.microsecond // 1000


def http_date(ms: int) -> str:
    """The IMF-fixdate (RFC 9110, 5.6.7) of milliseconds since 1970."""
    return formatdate(ms / 1000, usegmt=True)
