"""Products, found by what they are: what stands behind `Query.products`."""

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

FIRST, FIRST_AT_MOST = 50, 200
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
_LONGEST = 1000  # characters searched for: no name is as long, and SQLite takes no pattern of any length
_WILD = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})


class Products:
    """Those that a filter fits, in the order of their ids."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    async def resolve(self, sources: Sequence[Any], args: Args, context: Context) -> list[Sequence[Row]]:
        context.admit(self._resource)
        given = _given(args.get("filter") or {})
        after = after_of(args)
        if after:
            given["after"] = after
        values = {name: value for name, value in given.items() if value is not True}
        values["limit"] = first_of(args, FIRST, FIRST_AT_MOST)
        rows = Rows(self._resource.record, products.page(frozenset(given)))
        return (await context.load(rows, [tuple(values.items())])) * len(sources)


def _given(filter_: Mapping[str, Any]) -> dict[str, Any]:
    """A ProductFilter as the statement's filters and their values; what is null is not asked for."""
    asked = {name: value for name, value in filter_.items() if value is not None}
    found: dict[str, Any] = {}
    for name in ("sku", "status", "currency", "search"):
        if name in asked:
            if "\x00" in asked[name]:
                raise invalid(("filter", name), "contains a NUL character; remove it", "invalid")
            found[name] = asked[name]
    if "ids" in asked:
        found["ids"] = tuple(dict.fromkeys(asked["ids"]))
    if "search" in asked:
        found["search"] = f"%{asked['search'][:_LONGEST].translate(_WILD)}%"
    if "priceMin" in asked:
        found["price_min"] = _units(asked, "priceMin", ROUND_CEILING)
    if "priceMax" in asked:
        found["price_max"] = _units(asked, "priceMax", ROUND_FLOOR)
    if "inStock" in asked:
        found["in_stock" if asked["inStock"] else "out_of_stock"] = True
    return found


def _units(asked: Mapping[str, Any], name: str, rounding: str) -> int:
    """A bound in units: between two of them, the one that lets the same amounts through."""
    amount = asked[name]
    if not math.isfinite(amount):  # a literal such as 1e400
        raise invalid(("filter", name), "is too large", "out_of_range")
    units = int((Decimal(repr(amount)) * UNITS).to_integral_value(rounding))
    return max(-_MAX_UNITS, min(_MAX_UNITS, units))
