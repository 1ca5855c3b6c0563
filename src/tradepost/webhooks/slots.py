"""Slots: how many deliveries of an endpoint are out at once, and which of those that wait go next.

A slow or dead endpoint has its few slots and no others. Retries and redeliveries may have half of them, and
are asked first: they wait at most until one of those that are out has ended, and newer events never wait
behind them.
"""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

SLOTS = 4
FOR_LATER = 2


def chosen(first: Sequence[T], later: Sequence[T], out_first: int, out_later: int) -> list[T]:
    """Which of two queues go out now, each in its order; `out_…` are out already."""
    free = max(0, SLOTS - out_first - out_later)
    again = list(later[: max(0, min(free, FOR_LATER - out_later))])
    return again + list(first[: free - len(again)])
