"""Demo products of a home shop. Name and price derive from a thing and its material."""

from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec

from tradepost.domain.money import UNITS


class Thing(msgspec.Struct, frozen=True):
    """Something made of one of several materials; `euros` is its price in the cheapest one."""

    code: str
    name: str
    euros: float
    materials: tuple[str, ...]
    purpose: str


class Good(NamedTuple):
    """The members of a product record."""

    sku: str
    name: str
    description: str | None
    price: int
    currency: str
    stock: int | None
    status: str


_DATA = msgspec.json.decode(Path(__file__).with_name("goods.json").read_bytes())
_MAKES: list[str] = _DATA["makes"]
THINGS = msgspec.convert(_DATA["things"], tuple[Thing, ...])
# For each currency: the rate of a euro; prices are multiples of a step, less a little.
_RATES: dict[str, tuple[float, int, int]] = {
    "EUR": (1.0, UNITS // 2, 100),
    "GBP": (0.86, UNITS // 2, 100),
    "USD": (1.1, UNITS, 100),
    "SEK": (11.2, 10 * UNITS, UNITS),
    "JPY": (160.0, 100 * UNITS, 20 * UNITS),
}
_SHARES = (38, 24, 26, 7, 5)
_SURCHARGE = 0.35  # for each step to a better material
_TRACKED, _SOLD_OUT, _ARCHIVED, _DESCRIBED = 0.45, 0.04, 0.04, 0.85  # shares of all products


class Goods:
    """Makes products, each with a number of its own at the end of its sku."""

    def __init__(self, random: Random, last_number: int) -> None:
        self._random = random
        self._number = last_number

    def good(self) -> Good:
        """The next product."""
        draw = self._random
        self._number += 1
        thing = THINGS[(self._number * 7) % len(THINGS)]  # 7 and 24 are coprime: all things take turns
        better = draw.randrange(len(thing.materials))
        currency = draw.choices(tuple(_RATES), _SHARES)[0]
        return Good(
            sku=f"{thing.code}-{self._number:05}",
            name=f"{draw.choice(_DATA['makes'])} {thing.materials[better]} {thing.name}",
            description=thing.purpose if draw.random() < _DESCRIBED else None,
            price=_price(thing.euros * (1 + _SURCHARGE * better) * draw.uniform(0.9, 1.15), currency),
            currency=currency,
            stock=self._stock(),
            status="ARCHIVED" if draw.random() < _ARCHIVED else "ACTIVE",
        )

    def _stock(self) -> int | None:
        draw = self._random
        if draw.random() >= _TRACKED:
            return None
        return 0 if draw.random() < _SOLD_OUT / _TRACKED else draw.randint(3, 400)


def _price(euros: float, currency: str) -> int:
    """A price in units of money, rounded as is usual in the currency: 18.99 or 19.49, 189, 2980."""
    rate, step, less = _RATES[currency]
    return max(1, round(euros * rate * UNITS / step)) * step - less
