"""Trade: who bought what and when over the last year. Some come back often; some goods are loved more."""

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

DAY_MS = 24 * 3600 * 1000
YEAR_MS = 365 * DAY_MS
BEFORE_MS = 45 * DAY_MS  # people and goods begin to come before the first order

_OPEN_MS = 6 * DAY_MS  # how long an order usually takes
_LINES, _LINE_SHARES = (1, 2, 3, 4, 5), (34, 28, 20, 11, 7)
_PIECES, _PIECE_SHARES = (1, 2, 3, 4, 6, 12), (62, 20, 8, 5, 4, 1)
_CANCELLED = 0.06
_FORGOTTEN = 0.01  # of old orders, that stayed pending
_SENT = 0.85  # of orders of whoever has an address


class Bought(NamedTuple):
    """An order: indexes of a buyer and of goods, and how it came."""

    at_ms: int
    buyer: int
    goods: tuple[tuple[int, int], ...]  # with the pieces
    status: str
    sent: bool


@dataclass
class Shelf:
    """The goods of one currency, in the order in which they came."""

    goods: list[int] = field(default_factory=list)
    since: "array[int]" = field(default_factory=lambda: array("q"))


class Trade:
    """Makes orders, in the order of time."""

    def __init__(self, random: Random, now_ms: int) -> None:
        self._random = random
        self._now = now_ms
        self._began = now_ms - YEAR_MS
        self.since: array[int] = array("q")
        self.currencies: list[str] = []
        self.shelves: dict[str, Shelf] = {}

    def came(self, index: int, count: int) -> int:
        """When the one with this index of so many people or goods came: many at first, then steadily."""
        share = (index + self._random.random()) / count
        early = self._began - BEFORE_MS
        return int(early + (self._now - early) * share**1.6)

    def buyer(self, at_ms: int, currency: str) -> None:
        """Someone who can buy from now on."""
        self.since.append(at_ms)
        self.currencies.append(currency)

    def good(self, index: int, at_ms: int, currency: str) -> None:
        """Something that can be bought from now on."""
        shelf = self.shelves.setdefault(currency, Shelf())
        shelf.goods.append(index)
        shelf.since.append(at_ms)

    def order(self, index: int, count: int) -> Bought:
        """The order with this index of so many: more and more as the year goes."""
        draw = self._random
        at_ms = int(self._began + YEAR_MS * ((index + draw.random()) / count) ** 0.75)
        buyer = self._early(bisect_right(self.since, at_ms))
        at_ms = max(at_ms, self.since[buyer])
        shelf = self.shelves.get(self.currencies[buyer]) or next(iter(self.shelves.values()))
        there = max(1, bisect_right(shelf.since, at_ms))
        at_ms = max(at_ms, shelf.since[0])
        wanted = min(there, draw.choices(_LINES, _LINE_SHARES)[0])
        goods = {shelf.goods[self._early(there)] for _ in range(wanted)}
        pieces = draw.choices(_PIECES, _PIECE_SHARES, k=len(goods))
        return Bought(
            at_ms,
            buyer,
            tuple(zip(sorted(goods), pieces, strict=True)),
            self._status(at_ms),
            draw.random() < _SENT,
        )

    def _early(self, there: int) -> int:
        """One of those that are there; the first ones more often."""
        return int(max(1, there) * self._random.random() ** 1.7)

    def _status(self, at_ms: int) -> str:
        drawn, age = self._random.random(), self._now - at_ms
        if drawn < _CANCELLED:
            return "CANCELLED"
        pending = _FORGOTTEN if age > _OPEN_MS else 1 - age / _OPEN_MS
        return "PENDING" if self._random.random() < pending else "FULFILLED"
