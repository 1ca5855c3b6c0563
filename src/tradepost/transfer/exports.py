"""Exporting entities page by page, in the order of their ids, as the import reads them.

Deleted users and products are included only if orders refer to them, since those orders could not be imported
otherwise. They have their `deletedAt`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from tradepost.domain.line_item import LineItem
from tradepost.domain.money import UNITS
from tradepost.domain.order import Order
from tradepost.storage.database import Database, Row
from tradepost.storage.plain import Listing, plain
from tradepost.storage.statement import Statement
from tradepost.storage.statements import exports, references
from tradepost.transfer.csv_table import LINE_ID

_PAGE = 500

Entity = dict[str, Any]


@dataclass(frozen=True)
class Export:
    """How one kind of entity is read, and its columns in CSV."""

    statement: Statement
    entities: Callable[[Sequence[Row]], list[Entity]]
    columns: tuple[str, ...]
    line_columns: tuple[str, ...] = ()
    kind: str | None = None  # if its entities may have references

    async def pages(self, database: Database) -> AsyncIterator[list[Entity]]:
        """All entities, in the order of their ids."""
        after = ""
        while True:
            rows = await database.reading().rows(self.statement, after_id=after, limit=_PAGE)
            if not rows:
                return
            after = rows[-1][0]
            entities = self.entities(rows)
            if self.kind:
                await _refer(database, self.kind, entities)
            yield entities
            await asyncio.sleep(0)  # each page is a read of its own, so the export is of no single moment


async def _refer(database: Database, kind: str, entities: Sequence[Entity]) -> None:
    """Adds the references of entities in the system they came from."""
    ids = [each["id"] for each in entities]
    by_id: dict[str, str] = dict(await database.reading().rows(references.OF, kind=kind, ids=ids))
    for each in entities if by_id else ():
        each["reference"] = by_id.get(each["id"])


_USER = ("id", "name", "email", "status", "createdAt", "deletedAt")
_ADDRESS = (
    "id",
    "userId",
    "recipient",
    "line1",
    "line2",
    "city",
    "region",
    "postalCode",
    "country",
    "createdAt",
)
_PRODUCT = (
    "id",
    "sku",
    "name",
    "description",
    "price",
    "currency",
    "stock",
    "status",
    "createdAt",
    "deletedAt",
)
_ORDER = (
    "id",
    "reference",
    "userId",
    "status",
    "currency",
    "shippingAddressId",
    "shippingAddress",
    "createdAt",
)
_LINE = ("id", "productId", "sku", "name", "quantity", "unitPrice")


def _users(rows: Sequence[Row]) -> list[Entity]:
    return [dict(zip(_USER, row, strict=True)) for row in rows]


def _addresses(rows: Sequence[Row]) -> list[Entity]:
    return [dict(zip(_ADDRESS, row, strict=True)) for row in rows]


def _products(rows: Sequence[Row]) -> list[Entity]:
    products = [dict(zip(_PRODUCT, row, strict=True)) for row in rows]
    for each in products:
        each["price"] /= UNITS
    return products


def _orders(rows: Sequence[Row]) -> list[Entity]:
    return [_order(list(lines)) for _, lines in groupby(rows, itemgetter(0))]


def _order(rows: Sequence[Row]) -> Entity:
    order_id, user_id, status, currency, address_id, address, created_at = _order_of(rows[0])
    snapshot = None if address is None else msgspec.Raw(address.encode())
    own = (order_id, None, user_id, status, currency, address_id, snapshot, created_at)
    lines = [dict(zip(_LINE, _line_of(row), strict=True)) for row in rows]
    for line in lines:
        line["unitPrice"] /= UNITS
    return dict(zip(_ORDER, own, strict=True)) | {"lineItems": lines}


def _picked(names: Sequence[str], wanted: str, offset: int = 0) -> Callable[[Row], tuple[Any, ...]]:
    """Gets some columns of a row; the first of `names` is at `offset`."""
    return itemgetter(*[offset + names.index(name) for name in wanted.split()])


_order_of = _picked(
    plain(Order).names, "id user_id status currency shipping_address_id shipping_address created_at"
)
_line_of = _picked(
    plain(LineItem).names, "id product_id sku name quantity unit_price", len(plain(Order).names)
)

EXPORTS: dict[str, Export] = {
    "users": Export(exports.USERS, _users, _USER),
    "addresses": Export(exports.ADDRESSES, _addresses, _ADDRESS),
    "products": Export(exports.PRODUCTS, _products, _PRODUCT),
    "orders": Export(
        plain(Order).page(Listing(after=True)), _orders, _ORDER, (LINE_ID, *_LINE[1:]), Order.kind
    ),
}
