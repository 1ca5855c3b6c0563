"""Importing users and products: records without children, identified by one member or by their id."""

from collections.abc import Sequence
from typing import Any

from tradepost.actions.change import Change
from tradepost.domain.input import Input, Values, names_of
from tradepost.domain.product import Product
from tradepost.domain.record import Record
from tradepost.domain.user import User
from tradepost.problems import invalid
from tradepost.storage.plain import plain
from tradepost.storage.statement import Statement
from tradepost.storage.statements import identities
from tradepost.transfer import lookup
from tradepost.transfer.file_entity import RowShape
from tradepost.transfer.kind import Entry, ImportOutcome
from tradepost.transfer.row import ProductRow, UserRow, born, normal

_Identity = tuple[str, str]


class SimpleKind:
    """The import of such a record. `identity` is the column that tells whether one already exists."""

    def __init__(
        self, record: type[Record], row: type[Record], identity: str, by_identity: Statement
    ) -> None:
        self.record = record
        self.shape = RowShape(row)
        self.input = Input(row, names_of(row))
        self._statements = plain(record)
        self._columns = self._statements.table.c.keys()
        self._identity = identity
        self._by_identity = by_identity

    def entry(self, values: Values, now_ms: int) -> Entry:
        if values["deleted_at"] and not values["id"]:
            raise invalid(("deleted_at",), "requires an id", "needs_id")
        values["deleted_at"] = normal(values["deleted_at"])
        if self._identity == "email_key":
            values["email_key"] = values["email"].casefold()
        return Entry(values, born(values, now_ms))

    async def add(self, change: Change, entries: Sequence[Entry]) -> list[ImportOutcome]:
        known = await self._known(change, entries)
        outcomes: list[ImportOutcome] = []
        rows = []
        for entry in entries:
            own = self._identities(entry.values)
            if known.isdisjoint(own):
                known |= own
                rows.append(self._row(change, entry))
                outcomes.append("added")
            else:
                outcomes.append("there")
        if rows:
            await change.tx.many(self._statements.insert, rows)
        for row in rows:
            if row.get("deleted_at") is None:
                change.announce(f"{self.record.kind}.created", self.record.plural, row["id"])
        return outcomes

    async def _known(self, change: Change, entries: Sequence[Entry]) -> set[_Identity]:
        """Those of the entries' identities that exist."""
        wanted = [each for entry in entries for each in self._identities(entry.values)]
        names = [value for column, value in wanted if column != "id"]
        ids = [value for column, value in wanted if column == "id"]
        named = await lookup.rows(change, self._by_identity, "names", names)
        taken = await lookup.ids(change, self.record, ids)
        return {(self._identity, row[0]) for row in named} | {("id", each) for each in taken}

    def _identities(self, values: Values) -> set[_Identity]:
        """What identifies an entry: its id, and its identity column unless it is deleted."""
        own = {("id", values["id"])} if values["id"] else set()
        if not values["deleted_at"]:
            own.add((self._identity, values[self._identity]))
        return own

    def _row(self, change: Change, entry: Entry) -> dict[str, Any]:
        values, at = entry.values, entry.born
        row = {name: values.get(name) for name in self._columns}
        row["id"] = values["id"] or change.new_id(at.ms)
        row["created_at"] = row["updated_at"] = at.text
        row["version"] = 1
        return row


def users() -> SimpleKind:
    """The import of users, identified by their email in any case."""
    return SimpleKind(User, UserRow, "email_key", identities.USERS_BY_EMAIL)


def products() -> SimpleKind:
    """The import of products, identified by their sku."""
    return SimpleKind(Product, ProductRow, "sku", identities.PRODUCTS_BY_SKU)
