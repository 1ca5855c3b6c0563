"""What was bought: one product a stock code, under its most frequent spelling, name and price."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from .lines import Line

T = TypeVar("T")


class Product(NamedTuple):
    sku: str
    name: str
    pence: int
    created_at: str


@dataclass(slots=True)
class Evidence:
    """How often each spelling, description and price of a stock code occurs; the first met wins a tie."""

    created_at: str
    spellings: Counter[str] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)
    prices: Counter[int] = field(default_factory=Counter)

    def add(self, code: str, description: str, pence: int, count: int) -> None:
        self.spellings[code] += count
        if description:
            self.names[description] += count
        if pence:
            self.prices[pence] += count

    def product(self) -> Product:
        """Named after its code where no line describes it, and free only where no line has a price."""
        sku = most_frequent(self.spellings, "")
        return Product(sku, most_frequent(self.names, sku), most_frequent(self.prices, 0), self.created_at)


def most_frequent(counts: Counter[T], otherwise: T) -> T:
    return counts.most_common(1)[0][0] if counts else otherwise


def catalogue(lines: Sequence[Line]) -> dict[str, Product]:
    """From every spelling of a stock code to its product; `85123A` and `85123a` are one."""
    first_sold = first_times(lines)
    evidence: dict[str, Evidence] = {}
    # Counted before they are looked at: the lines have 20 times as many rows as different contents.
    for (code, description, pence), count in Counter(map(contents, lines)).items():
        known = evidence.setdefault(code.upper(), Evidence(first_sold[code.upper()]))
        known.add(code, description, pence, count)
    products = {code: known.product() for code, known in evidence.items()}
    return {spelling: products[code] for code, known in evidence.items() for spelling in known.spellings}


def contents(line: Line) -> tuple[str, str, int]:
    return line.code, line.description, line.pence


def first_times(lines: Sequence[Line]) -> dict[str, str]:
    first: dict[str, str] = {}
    for line in lines:
        first.setdefault(line.code.upper(), line.placed_at)
    return first
