"""Importing users and products: records without children, identified by one member or by their id."""

from collections.abc import Callable, Sequence

from tradepost.actions.change import Change
from tradepost.domain.input import Input, Values, names_of
from tradepost.domain.product import Product
from tradepost.domain.record import Record
from tradepost.domain.user import User
from tradepost.problems import invalid
from tradepost.storage.statement import Statement
from tradepost.storage.statements import identities
from tradepost.transfer import lookup
from tradepost.transfer.file_entity import RowShape
from tradepost.transfer.kind import Entry, ImportOutcome, item
from tradepost.transfer.row import ProductRow, UserRow, born, normal

_Identity = tuple[str, str]


class SimpleKind:
    """The import of such a record. `identity` is the name that tells whether one already exists."""

    def __init__(
        self,
        record: type[Record],
        row: type[Record],
        identity: Callable[[Values], str],
        by_identity: Statement,
    ) -> None:
        self.record = record
        self.shape = RowShape(row)
        self.input = Input(row, names_of(row), patching=True)
        self._identity = identity
        self._by_identity = by_identity

    def entry(self, values: Values, now_ms: int) -> Entry:
        if values["deleted_at"] and not values["id"]:
            raise invalid(("deleted_at",), "requires an id", "needs_id")
        values["deleted_at"] = normal(values["deleted_at"])
        return Entry(values, born(values, now_ms))

    async def add(self, change: Change, entries: Sequence[Entry]) -> list[ImportOutcome]:
        known = await self._known(change, entries)
        outcomes: list[ImportOutcome] = []
        added: list[Entry] = []
        for entry in entries:
            own = self._identities(entry.values)
            outcomes.append("added" if known.isdisjoint(own) else "there")
            if outcomes[-1] == "added":
                known |= own
                added.append(entry)
        items = [item(change, self.record, entry) for entry in added]
        await change.add_many(items, [{"deleted_at": entry.values["deleted_at"]} for entry in added])
        for each, entry in zip(items, added, strict=True):
            if entry.values["deleted_at"] is None:
                change.announce(f"{self.record.kind}.created", self.record.plural, each.id)
        return outcomes

    async def _known(self, change: Change, entries: Sequence[Entry]) -> set[_Identity]:
        """Those of the entries' identities that exist."""
        wanted = [each for entry in entries for each in self._identities(entry.values)]
        names = [value for column, value in wanted if column != "id"]
        ids = [value for column, value in wanted if column == "id"]
        named = await lookup.rows(change, self._by_identity, "names", names)
        taken = await lookup.ids(change, self.record, ids)
        return {("name", row[0]) for row in named} | {("id", each) for each in taken}

    def _identities(self, values: Values) -> set[_Identity]:
        """What identifies an entry: its id, and its name unless it is deleted."""
        own = {("id", values["id"])} if values["id"] else set()
        if not values["deleted_at"]:
            own.add(("name", self._identity(values)))
        return own


def users() -> SimpleKind:
    """The import of users, identified by their email in any case."""
    return SimpleKind(User, UserRow, lambda row: row["email"].casefold(), identities.USERS_BY_EMAIL)


def products() -> SimpleKind:
    """The import of products, identified by their sku."""
    return SimpleKind(Product, ProductRow, lambda row: row["sku"], identities.PRODUCTS_BY_SKU)
