"""The median of ratios that were measured in pairs, with its confidence interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import median

_OUTSIDE = 0.05
FEWEST = 6  # pairs for an interval of 95 %


@dataclass(frozen=True)
class Ratio:
    """A median with its confidence interval of at least 95 %."""

    median: float
    low: float
    high: float


def ratio(ones: Sequence[float], others: Sequence[float]) -> Ratio:
    """The ratio of each to its counterpart.

    The interval lies between two order statistics, for 15 ratios the fourth and the twelfth. It assumes that
    the ratios are independent, and nothing about their distribution. ValueError if there are too few of them.
    """
    ordered = sorted(one / other for one, other in zip(ones, others, strict=True))
    rank = _rank(len(ordered))
    return Ratio(median(ordered), ordered[rank - 1], ordered[-rank])


def _rank(count: int) -> int:
    """The largest rank whose order statistic exceeds the true median with a probability of at most 2.5 %."""
    rank, below = 0, 1 / 2**count
    while below <= _OUTSIDE / 2:
        rank += 1
        below += comb(count, rank) / 2**count
    if not rank:
        raise ValueError(f"an interval takes at least {FEWEST} ratios, not {count}")
    return rank
