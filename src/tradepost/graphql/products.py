"""`Query.products`: products by a filter."""

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from tradepost.domain.money import UNITS
from tradepost.graphql.context import Context
from tradepost.graphql.field import Args
from tradepost.graphql.relations import Rows, after_of, first_of
from tradepost.problems import invalid
from tradepost.resource import Resource
from tradepost.storage.database import Row
from tradepost.storage.statements import products

FIRST, MAX_FIRST = 50, 200
# How ProductFilter is declared.
FILTER = {
    "ids": "[ID!]",
    "sku": "String",
    "status": "ProductStatus",
    "currency": "String",
    "search": "String",
    "priceMin": "Float",
    "priceMax": "Float",
    "inStock": "Boolean",
}
_MAX_UNITS = 2**63 - 1
_MAX_SEARCH = 1000  # characters; no name is as long, and SQLite bounds the length of a pattern
_WILD = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})


class Products:
    """The products that match a filter, in the order of their ids; raises `Forbidden` without the scope.

    Arguments: `filter`; `first`, 0 to 200, by default 50; `after`, an id. Raises `Invalid` for others.
    """

    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    async def resolve(self, sources: Sequence[Any], args: Args, context: Context) -> list[Sequence[Row]]:
        context.admit(self._resource)
        filters = _filters(args.get("filter") or {})
        after = after_of(args)
        if after:
            filters["after"] = after
        values = {name: value for name, value in filters.items() if value is not True}
        values["limit"] = first_of(args, FIRST, MAX_FIRST)
        rows = Rows(self._resource.record, products.page(frozenset(filters)))
        return (await context.load(rows, [tuple(values.items())])) * len(sources)


def _filters(product_filter: Mapping[str, Any]) -> dict[str, Any]:
    """A ProductFilter as the statement's filters and their values; raises `Invalid`. Null filters nothing."""
    members = {name: value for name, value in product_filter.items() if value is not None}
    filters: dict[str, Any] = {}
    for name in ("sku", "status", "currency", "search"):
        if name in members:
            if "\x00" in members[name]:
                raise invalid(("filter", name), "must not contain a NUL character", "invalid")
            filters[name] = members[name]
    if "ids" in members:
        filters["ids"] = tuple(dict.fromkeys(members["ids"]))
    if "search" in members:
        filters["search"] = f"%{members['search'][:_MAX_SEARCH].translate(_WILD)}%"
    if "priceMin" in members:
        filters["price_min"] = _units(members, "priceMin", ROUND_CEILING)
    if "priceMax" in members:
        filters["price_max"] = _units(members, "priceMax", ROUND_FLOOR)
    if "inStock" in members:
        filters["in_stock" if members["inStock"] else "out_of_stock"] = True
    return filters


def _units(members: Mapping[str, Any], name: str, rounding: str) -> int:
    """A bound in units of money, rounded so that the same amounts match; raises `Invalid` for infinity."""
    amount = members[name]
    if not math.isfinite(amount):  # a literal such as 1e400
        raise invalid(("filter", name), "is too large", "out_of_range")
    units = int((Decimal(repr(amount)) * UNITS).to_integral_value(rounding))
    return max(-_MAX_UNITS, min(_MAX_UNITS, units))
