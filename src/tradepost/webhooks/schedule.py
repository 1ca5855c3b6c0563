"""The schedule: when a delivery is tried again after an attempt failed (specification 6.5).

Never earlier than the schedule says; up to a twentieth later, so that what failed together does not come
back together. A receiver that asks for more time with `Retry-After` gets it.
"""

import math
import random

_SPREAD = 0.05  # half of what a retry may be late: the rest is for waiting its turn


class Schedule:
    """The delays after the attempts 0, 1, 2 …, in seconds; behind the last of them there is no other."""

    def __init__(self, delays: tuple[float, ...]) -> None:
        self._delays = delays

    def after(self, number: int, ended: int, retry_after: float | None) -> int | None:
        """When the attempt behind `number` is due, in ms; None if there is none.

        `ended` is when that one ended, in ms; `retry_after` what the receiver asked for, in seconds.
        """
        if number >= len(self._delays):
            return None
        delay = self._delays[number] * (1 + random.uniform(0, _SPREAD))  # noqa: S311 (spreads retries)
        return ended + math.ceil(1000 * max(delay, retry_after or 0.0))
