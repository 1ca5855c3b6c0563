"""Demo products of a home shop. Name and price derive from a thing and its material."""

from random import Random
from typing import NamedTuple

from tradepost.domain.money import UNITS


class Thing(NamedTuple):
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


_WOOD = ("Pine", "Beech", "Ash", "Oak", "Walnut")
_CLOTH = ("Cotton", "Linen", "Wool", "Mohair")
_CLAY = ("Earthenware", "Stoneware", "Porcelain")
_METAL = ("Steel", "Enamel", "Copper", "Brass")
_GLASS = ("Pressed Glass", "Blown Glass", "Smoked Glass")
_LEAVES = ("Green", "Black", "White", "Smoked")

THINGS = (
    Thing("CHR", "Dining Chair", 79, _WOOD, "Seats one for a long evening; stacks three high."),
    Thing("TBL", "Side Table", 119, _WOOD, "Holds a lamp, a book and a cup."),
    Thing("SHF", "Wall Shelf", 39, _WOOD, "Carries 15 kg; screws and plugs come along."),
    Thing("STL", "Step Stool", 49, _WOOD, "Two steps, for shelves that are out of reach."),
    Thing("BRD", "Cutting Board", 24, _WOOD, "Oiled once, and again whenever it looks dry."),
    Thing("SPN", "Cooking Spoon", 7, _WOOD, "Does not scratch what it stirs."),
    Thing("BWL", "Salad Bowl", 32, (*_WOOD, *_CLAY), "For four hungry people or six polite ones."),
    Thing("MUG", "Mug", 12, _CLAY, "Holds 350 ml; goes into the dishwasher."),
    Thing("PLT", "Dinner Plate", 14, _CLAY, "27 cm across, with a rim that keeps the sauce."),
    Thing("TPT", "Teapot", 36, (*_CLAY, *_METAL), "One litre, with a sieve that catches every leaf."),
    Thing("VSE", "Vase", 28, (*_CLAY, *_GLASS), "For a bunch, or for a single branch."),
    Thing("CRF", "Carafe", 22, _GLASS, "One litre of water on the table."),
    Thing("TMB", "Tumbler", 6, _GLASS, "250 ml; stands safely."),
    Thing("LMP", "Table Lamp", 58, (*_METAL, *_GLASS), "Warm light, with a switch on the cord."),
    Thing("PAN", "Frying Pan", 44, _METAL, "28 cm, for every kind of stove."),
    Thing("KTL", "Kettle", 52, _METAL, "Whistles when it is time."),
    Thing("HOK", "Coat Hook", 9, (*_METAL, *_WOOD), "Bears the heaviest winter coat."),
    Thing("CND", "Candle Holder", 16, (*_METAL, *_CLAY), "For candles of 22 mm."),
    Thing("THR", "Throw", 64, _CLOTH, "130 by 180 cm of evening on the sofa."),
    Thing("CSH", "Cushion Cover", 19, _CLOTH, "45 by 45 cm, with a hidden zip."),
    Thing("TWL", "Tea Towel", 8, _CLOTH[:2], "Dries without leaving threads."),
    Thing("APR", "Apron", 27, _CLOTH[:2], "One size; the straps cross at the back."),
    Thing("RUG", "Rug", 145, _CLOTH[:3], "140 by 200 cm, woven flat."),
    Thing("TEA", "Tea, 100 g", 6, _LEAVES, "From one garden, picked by hand."),
)
_MAKES = (
    "Alder",
    "Bruno",
    "Cove",
    "Dune",
    "Elva",
    "Fjord",
    "Gault",
    "Hollow",
    "Isola",
    "Juno",
    "Kelso",
    "Lumen",
)
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
            name=f"{draw.choice(_MAKES)} {thing.materials[better]} {thing.name}",
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
