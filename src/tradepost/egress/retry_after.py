"""`Retry-After` (RFC 9110, 10.2.3): when a receiver wants the next request."""

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"[0-9]+")
_LONGEST_SECONDS = 30 * 24 * 3600.0


def retry_after(text: str, now_seconds: float) -> float | None:
    """Seconds to wait, of a number of seconds or an HTTP-date; 0 if that is past, None if it is neither.

    `now_seconds` is the time since 1970. More than 30 days counts as 30 days.
    """
    text = text.strip(" \t")
    seconds = float(text) if _SECONDS.fullmatch(text) else _seconds_until(text, now_seconds)
    return None if seconds is None else min(max(0.0, seconds), _LONGEST_SECONDS)


def _seconds_until(date: str, now_seconds: float) -> float | None:
    try:
        at = parsedate_to_datetime(date)
        # HTTP-dates are in UTC; asctime's form does not say so, and `timestamp` would take it for local time.
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now_seconds
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
