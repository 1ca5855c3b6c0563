"""Demo orders of the last year. Some buyers return often, and some products sell better."""

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

DAY_MS = 24 * 3600 * 1000
YEAR_MS = 365 * DAY_MS
BEFORE_MS = 45 * DAY_MS  # from the first users and products to the first order

_OPEN_MS = 6 * DAY_MS  # the longest that an order normally stays pending
_LINES, _LINE_SHARES = (1, 2, 3, 4, 5), (34, 28, 20, 11, 7)
_PIECES, _PIECE_SHARES = (1, 2, 3, 4, 6, 12), (62, 20, 8, 5, 4, 1)
_CANCELLED = 0.06
_FORGOTTEN = 0.01  # share of old orders that are still pending
_SHIPPED = 0.85  # share of orders with an address, if the buyer has one


class Bought(NamedTuple):
    """An order: its instant, the indexes of its buyer and products, and its status."""

    at_ms: int
    buyer: int
    goods: tuple[tuple[int, int], ...]  # index and quantity
    status: str
    shipped: bool


@dataclass
class Shelf:
    """The products of one currency, in the order of their arrival."""

    goods: list[int] = field(default_factory=list)
    since_ms: "array[int]" = field(default_factory=lambda: array("q"))


class Trade:
    """Makes orders in chronological order."""

    def __init__(self, random: Random, now_ms: int) -> None:
        self._random = random
        self._now_ms = now_ms
        self._began_ms = now_ms - YEAR_MS
        self.since_ms: array[int] = array("q")
        self.currencies: list[str] = []
        self.shelves: dict[str, Shelf] = {}

    def arrived_ms(self, index: int, count: int) -> int:
        """When user or product `index` of `count` was added: many at first, then steadily."""
        share = (index + self._random.random()) / count
        first_ms = self._began_ms - BEFORE_MS
        return int(first_ms + (self._now_ms - first_ms) * share**1.6)

    def buyer(self, at_ms: int, currency: str) -> None:
        """Adds a buyer."""
        self.since_ms.append(at_ms)
        self.currencies.append(currency)

    def good(self, index: int, at_ms: int, currency: str) -> None:
        """Adds a product."""
        shelf = self.shelves.setdefault(currency, Shelf())
        shelf.goods.append(index)
        shelf.since_ms.append(at_ms)

    def order(self, index: int, count: int) -> Bought:
        """Order `index` of `count`; orders become more frequent over the year."""
        draw = self._random
        at_ms = int(self._began_ms + YEAR_MS * ((index + draw.random()) / count) ** 0.75)
        buyer = self._early(bisect_right(self.since_ms, at_ms))
        at_ms = max(at_ms, self.since_ms[buyer])
        shelf = self.shelves.get(self.currencies[buyer]) or next(iter(self.shelves.values()))
        available = max(1, bisect_right(shelf.since_ms, at_ms))
        at_ms = max(at_ms, shelf.since_ms[0])
        wanted = min(available, draw.choices(_LINES, _LINE_SHARES)[0])
        goods = {shelf.goods[self._early(available)] for _ in range(wanted)}
        pieces = draw.choices(_PIECES, _PIECE_SHARES, k=len(goods))
        return Bought(
            at_ms,
            buyer,
            tuple(zip(sorted(goods), pieces, strict=True)),
            self._status(at_ms),
            draw.random() < _SHIPPED,
        )

    def _early(self, count: int) -> int:
        """A random index below `count`; low ones are more frequent."""
        return int(max(1, count) * self._random.random() ** 1.7)

    def _status(self, at_ms: int) -> str:
        drawn, age_ms = self._random.random(), self._now_ms - at_ms
        if drawn < _CANCELLED:
            return "CANCELLED"
        pending = _FORGOTTEN if age_ms > _OPEN_MS else 1 - age_ms / _OPEN_MS
        return "PENDING" if self._random.random() < pending else "FULFILLED"
