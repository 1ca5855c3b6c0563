"""Goods: what a shop for the home could sell. Thing and material make the name, and the price."""

from random import Random
from typing import NamedTuple

from tradepost.domain.money import UNITS


class Thing(NamedTuple):
    """Something made of one of several materials; `euros` is what it costs in the plainest one."""

    code: str
    name: str
    euros: float
    materials: tuple[str, ...]
    purpose: str


class Good(NamedTuple):
    """A product, as its record has it."""

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
# What a euro is in other money, and what prices end in there.
_RATES: dict[str, tuple[float, int, int]] = {  # rate, step, less
    "EUR": (1.0, UNITS // 2, 100),
    "GBP": (0.86, UNITS // 2, 100),
    "USD": (1.1, UNITS, 100),
    "SEK": (11.2, 10 * UNITS, UNITS),
    "JPY": (160.0, 100 * UNITS, 20 * UNITS),
}
_SHARES = (38, 24, 26, 7, 5)
_DEARER = 0.35  # each better material costs so much more
_TRACKED, _SOLD_OUT, _ARCHIVED, _TOLD = 0.45, 0.04, 0.04, 0.85


class Goods:
    """Makes products. Each has a number that no other has, at the end of its sku."""

    def __init__(self, random: Random, first_number: int) -> None:
        self._random = random
        self._number = first_number

    def good(self) -> Good:
        """Something new on the shelf."""
        draw = self._random
        self._number += 1
        thing = THINGS[(self._number * 7) % len(THINGS)]  # 7 and 24 have no factor in common: all take turns
        better = draw.randrange(len(thing.materials))
        currency = draw.choices(tuple(_RATES), _SHARES)[0]
        return Good(
            sku=f"{thing.code}-{self._number:05}",
            name=f"{draw.choice(_MAKES)} {thing.materials[better]} {thing.name}",
            description=thing.purpose if draw.random() < _TOLD else None,
            price=_price(thing.euros * (1 + _DEARER * better) * draw.uniform(0.9, 1.15), currency),
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
    """Rounded to what looks like a price there: 18.99 or 19.49, 189, 2980."""
    rate, step, less = _RATES[currency]
    return max(1, round(euros * rate * UNITS / step)) * step - less
