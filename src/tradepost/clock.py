"""Instants: integers of milliseconds since 1970 inside, RFC 3339 UTC text with `Z` at the edges.

The text has a fixed width, so that comparing texts compares instants, in Python and in both engines.
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
    """The machine's clock. Whoever needs the time is given one, so that a test can give another."""

    def now(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000


def instant(ms: int) -> str:
    """`1763712930123` → `2025-11-21T08:15:30.123Z`."""
    return f"{_second(ms // 1000)}.{ms % 1000:03}Z"


@lru_cache(256)
def _second(seconds: int) -> str:
    """The part of an instant that many share."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def parse_instant(text: str) -> int:
    """Any RFC 3339 date-time, or a bare date (its midnight UTC), to milliseconds; ValueError otherwise."""
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
    """An IMF-fixdate (RFC 9110, 5.6.7)."""
    return formatdate(ms / 1000, usegmt=True)
