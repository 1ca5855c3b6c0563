"""Clocks that show what a test wants them to."""

import time

from tradepost.clock import Clock, parse_instant

SECOND = 1000
DAY = 24 * 3600 * SECOND


class GivenClock(Clock):
    """Stands still until it is moved."""

    def __init__(self, at: str = "2026-11-20T08:15:30.123Z") -> None:
        self.ms = parse_instant(at)

    def now_ms(self) -> int:
        return self.ms

    def move(self, ms: int) -> None:
        """Moves on by so many milliseconds."""
        self.ms += ms

    def set(self, at: str) -> None:
        """Moves to an instant."""
        self.ms = parse_instant(at)


class TickingClock(GivenClock):
    """Moves on by a millisecond every third time it is read, so that instants differ, and some are the same."""

    def now_ms(self) -> int:
        self._read = getattr(self, "_read", 0) + 1
        return self.ms + self._read // 3


class GivenTime:
    """Stands in for the module `time` where seconds are measured, and stands still until it is moved."""

    def __init__(self) -> None:
        self._seconds = time.monotonic()

    def monotonic(self) -> float:
        return self._seconds

    def move(self, seconds: float) -> None:
        """Moves on by so many seconds."""
        self._seconds += seconds
