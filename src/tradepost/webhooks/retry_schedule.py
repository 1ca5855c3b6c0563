"""The retry schedule: when a delivery is tried again after a failed attempt (specification 6.5).

A retry is never earlier than scheduled. It may be up to a twentieth later, so that deliveries that failed
together do not come back together. A receiver that asks for more time with `Retry-After` gets it.
"""

import math
import random
from collections.abc import Sequence

_JITTER = 0.05  # half of how late a retry may be: the rest is for waiting its turn


class RetrySchedule:
    """`delays_seconds` are the delays after the attempts 0, 1, 2 …; a later failure has no retry."""

    def __init__(self, delays_seconds: Sequence[float]) -> None:
        self._delays_seconds = delays_seconds

    def after(self, number: int, ended_ms: int, retry_after_seconds: float | None) -> int | None:
        """When the attempt after `number` is due, in ms since 1970; None if there is none.

        `ended_ms` is when attempt `number` ended, `retry_after_seconds` what the receiver asked for.
        """
        if number >= len(self._delays_seconds):
            return None
        delay = self._delays_seconds[number] * (1 + random.uniform(0, _JITTER))  # noqa: S311 (spreads retries)
        return ended_ms + math.ceil(1000 * max(delay, retry_after_seconds or 0.0))
