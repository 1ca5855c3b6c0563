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

from tradepost.domain.address import Address
from tradepost.domain.line_item import LineItem
from tradepost.domain.money import UNITS
from tradepost.domain.order import Order
from tradepost.domain.product import Product
from tradepost.domain.record import Mark, Member, Record, members
from tradepost.domain.user import User
from tradepost.storage.database import Database, Row
from tradepost.storage.record_statements import Listing, statements_of
from tradepost.storage.statement import Statement
from tradepost.storage.statements import exports, references
from tradepost.transfer.csv_table import LINE_ID
from tradepost.transfer.row import AddressRow, LineRow, OrderRow, ProductRow, UserRow

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


class _Members:
    """The members of a record that its rows in files have, and what makes JSON of them.

    `columns` are those of the rows of the statement; the record's own begin at `offset`.
    """

    def __init__(
        self, record: type[Record], row: type[Record], columns: Sequence[str], offset: int = 0
    ) -> None:
        known = {*statements_of(record).names, "deleted_at"}
        read = [each for each in members(row) if each.name in known and not each.read_only]
        self.names = tuple(each.json_name for each in read)
        self._positions = [offset + columns.index(each.name) for each in read]
        self._conversions = [_CONVERSIONS.get(_mark(each)) for each in read]

    def of(self, row: Row) -> Entity:
        """The members of one row."""
        return {
            name: row[at] if convert is None or row[at] is None else convert(row[at])
            for name, at, convert in zip(self.names, self._positions, self._conversions, strict=True)
        }


_CONVERSIONS: dict[Mark | None, Callable[[Any], Any]] = {
    Mark.MONEY: lambda units: units / UNITS,
    Mark.JSON: lambda text: msgspec.Raw(text.encode()),
}


def _mark(each: Member) -> Mark | None:
    return next((mark for mark in _CONVERSIONS if mark in each.marks), None)


def _simple(record: type[Record], row: type[Record], statement: Statement) -> Export:
    hidden = ("deleted_at",) if record.hides_deleted else ()
    shown = _Members(record, row, (*statements_of(record).names, *hidden))
    return Export(statement, lambda rows: [shown.of(each) for each in rows], shown.names)


def _orders() -> Export:
    statements = statements_of(Order)
    order = _Members(Order, OrderRow, statements.names)
    line = _Members(LineItem, LineRow, statements_of(LineItem).names, offset=len(statements.names))

    def entity(rows: Sequence[Row]) -> Entity:
        return {**order.of(rows[0]), "lineItems": [line.of(row) for row in rows]}

    return Export(
        statements.page(Listing(after=True)),
        lambda rows: [entity(list(group)) for _, group in groupby(rows, itemgetter(0))],
        ("id", "reference", *order.names[1:]),
        (LINE_ID, *line.names[1:]),
        Order.kind,
    )


EXPORTS: dict[str, Export] = {
    "users": _simple(User, UserRow, exports.USERS),
    "addresses": _simple(Address, AddressRow, exports.ADDRESSES),
    "products": _simple(Product, ProductRow, exports.PRODUCTS),
    "orders": _orders(),
}
