"""`Retry-After` (RFC 9110, 10.2.3): when a receiver wants to be asked again."""

import re
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"[0-9]{1,9}")
_LONGEST_SECONDS = 30 * 24 * 3600  # more is no wish to be asked again


def retry_after(text: str, now: float) -> float | None:
    """Seconds from `now` (since 1970), of a number of seconds or an HTTP-date; 0 if that is past.

    None for what is neither, and for more than a month.
    """
    text = text.strip(" \t")
    seconds = float(text) if _SECONDS.fullmatch(text) else _seconds_until(text, now)
    if seconds is None or seconds > _LONGEST_SECONDS:
        return None
    return max(0.0, seconds)


def _seconds_until(date: str, now: float) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp() - now
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
