"""Ids: UUIDv7 in text form (RFC 9562, 5.7), ascending in the order of creation and opaque to clients.

An id contains the instant of creation, and `createdAt` is that same instant. Sorting by id *is* sorting by
creation; it needs no index of its own.
"""

import random
import re
import secrets

_TAIL_BITS = 74
_TAIL_MASK = (1 << _TAIL_BITS) - 1
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Ids:
    """Makes ids that ascend within a process, even within one millisecond (RFC 9562, 6.2, method 2)."""

    def __init__(self) -> None:
        self._ms = -1
        self._tail = 0
        # Ids are opaque, not secret: well-seeded pseudo-random numbers are enough to avoid collisions.
        self._random = random.Random(secrets.randbits(256))  # noqa: S311

    def new(self, ms: int) -> str:
        """The id of an item created `ms` milliseconds after 1970."""
        if ms == self._ms:
            self._tail += 1 + self._random.getrandbits(32)
        else:
            # The highest bit starts at zero, so that counting up cannot overflow within a millisecond.
            self._ms, self._tail = ms, self._random.getrandbits(_TAIL_BITS - 1)
        return _text(ms, self._tail & _TAIL_MASK)


def is_id(text: str) -> bool:
    """Whether a text has the format of an id. A text that has not is no item's id."""
    return _ID.fullmatch(text) is not None


def floor(ms: int) -> str:
    """The lowest id of a millisecond: every item created then or later has an id at least as high."""
    return _text(ms, 0)


def _text(ms: int, tail: int) -> str:
    value = (ms << 80) | (7 << 76) | ((tail >> 62) << 64) | (2 << 62) | (tail & ((1 << 62) - 1))
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
