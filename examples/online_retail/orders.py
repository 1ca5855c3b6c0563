"""Orders: an invoice's lines, cut into parts of at most 100, with each part's line for the import file."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from .figures import Totals
from .lines import Line
from .money import pounds
from .products import Product
from .users import User

MAX_LINES = 100


class Order(NamedTuple):
    reference: str
    buyer: User
    placed_at: str
    lines: Sequence[Line]

    @property
    def totals(self) -> Totals:
        quantity = sum(line.quantity for line in self.lines)
        return Totals(1, len(self.lines), quantity, sum(line.quantity * line.pence for line in self.lines))


def orders(lines: Iterable[Line]) -> Iterator[Order]:
    """An invoice becomes `536365`, and beyond 100 lines or for a second buyer also `536365/2`, `536365/3`…

    Its parts have the time of the first line: the minute may turn while a long invoice is typed in.
    """
    invoices: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        invoices.setdefault((line.invoice, line.buyer.email), []).append(line)
    parts: Counter[str] = Counter()
    for (invoice, _), its_lines in invoices.items():
        for start in range(0, len(its_lines), MAX_LINES):
            parts[invoice] += 1
            reference = invoice if parts[invoice] == 1 else f"{invoice}/{parts[invoice]}"
            part = its_lines[start : start + MAX_LINES]
            yield Order(reference, its_lines[0].buyer, its_lines[0].placed_at, part)


def json_line(order: Order, catalogue: Mapping[str, Product]) -> str:
    """Put together from JSON texts, so that no price passes through a float, and faster than json.dumps."""
    items = ",".join(json_item(line, catalogue[line.code]) for line in order.lines)
    return (
        f'{{"reference":{quoted(order.reference)},"userEmail":{quoted(order.buyer.email)},"status":"FULFILLED",'
        f'"createdAt":"{order.placed_at}","lineItems":[{items}]}}\n'
    )


def json_item(line: Line, product: Product) -> str:
    """The name and the price that this line was sold under, which may differ from the product's."""
    sku, name = quoted(product.sku), quoted(line.description or product.name)
    return f'{{"sku":{sku},"quantity":{line.quantity},"unitPrice":{price(line.pence)},"name":{name}}}'


quoted = cache(json.dumps)
price = cache(pounds)
