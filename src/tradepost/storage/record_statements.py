"""The statements of every record, derived from its declaration: get, lock, page, insert, update, delete.

A page starts after a position, the sort key and id of the last item seen (keyset pagination). So the
millionth page costs the same as the first, and no item is shown twice. A list of parents with embedded
children is one statement, so that both come from one snapshot.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgspec
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    FromClause,
    Select,
    and_,
    bindparam,
    func,
    literal,
    literal_column,
    select,
    tuple_,
)

from tradepost.clock import instant, parse_instant
from tradepost.domain.record import Mark, Record, members, parents
from tradepost.storage.database import Row
from tradepost.storage.statement import ONE, Statement, below_horizon, per_dialect
from tradepost.storage.tables import BIG, folded, table

Operator = Literal["eq", "gte", "gt", "lte", "lt"]


class Condition(NamedTuple):
    """A filter of a list; its value is the parameter `name`."""

    column: str
    operator: Operator
    name: str


class Listing(NamedTuple):
    """The shape of a list without its values. Each shape is compiled once and cached."""

    sort: str = "id"
    descending: bool = False
    after: bool = False  # parameters `after_key` (unless sorted by id) and `after_id`
    offset: bool = False
    conditions: tuple[Condition, ...] = ()
    owned: bool = False  # parameter `owner`
    embed: bool = True


_MAX_CACHED_PAGES = 512


R = TypeVar("R", bound=Record)


class RecordStatements(Generic[R]):
    """The statements of one record, and the conversion of rows to records and back."""

    def __init__(self, record: type[R]) -> None:
        self.record = record
        self.table = table(record)
        self.names = (*(each.name for each in members(record)), "version")
        self.columns = [self._column(name) for name in self.names]
        self.row: Callable[[R], Row] = attrgetter(*self.names)
        self._folded = [each for each in members(record) if Mark.UNIQUE_FOLDED in each.marks]
        written = [each for each in members(record) if not each.read_only]
        self._documents = [each.name for each in written if Mark.JSON in each.marks]
        self._instants = [each.name for each in written if each.is_instant]
        own = {*self.names, *map(folded, self._folded)}
        self._unset = dict.fromkeys(name for name in [c.name for c in self.table.c] if name not in own)
        self._own = frozenset(self.names)
        self._pages: OrderedDict[Listing, Statement] = OrderedDict()
        by_id = self.table.c.id == bindparam("id")
        kind = record.kind
        self.get = self._one(f"one {kind}", by_id)
        self.get_owned = self._one(f"one {kind} of a user", by_id, *self.owned())
        self.exists = self._exists(f"whether a {kind} exists", by_id)
        self.exists_owned = self._exists(f"whether a user has a {kind}", by_id, *self.owned())
        self.lock = Statement(
            f"one {kind}, locked until the transaction ends",
            select(*self.columns).where(by_id, *self.visible()).with_for_update(key_share=True),
        )
        self.insert = Statement(f"adds a {kind}", self.table.insert())
        self.update = Statement(f"changes a {kind}", self._update_clause())
        self.delete = Statement(f"deletes a {kind}", self._delete_clause(by_id))

    def stored(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The record's own values as its columns hold them: documents as JSON, instants in one format."""
        stored = {name: value for name, value in values.items() if name in self._own}
        for name in self._documents:
            if stored.get(name) is not None:
                stored[name] = msgspec.json.encode(stored[name]).decode()
        for name in self._instants:
            if stored.get(name) is not None:
                stored[name] = instant(parse_instant(stored[name]))
        return stored

    def page(self, listing: Listing) -> Statement:
        """The statement for a page of a list; the most recently used ones are cached."""
        statement = self._pages.get(listing)
        if statement is None:
            statement = self._pages[listing] = self._page(listing)
            if len(self._pages) > _MAX_CACHED_PAGES:
                self._pages.popitem(last=False)
        else:
            self._pages.move_to_end(listing)
        return statement

    def load(self, row: Sequence[Any]) -> R:
        """The record of a row; further columns, such as those of a child, are ignored."""
        return self.record(**dict(zip(self.names, row, strict=False)))

    def columns_of(self, row: Row) -> dict[str, Any]:
        """All columns of a row: members, case-folded members, and null for columns that are no members."""
        columns = dict(zip(self.names, row, strict=True))
        for each in self._folded:
            columns[folded(each)] = columns[each.name].casefold()
        return columns | self._unset if self._unset else columns

    def _one(self, purpose: str, *conditions: ColumnElement[bool]) -> Statement:
        chosen = select(*self.columns).where(*conditions, *self.visible())
        if self.record.embedded:
            below = statements_of(self.record.embedded.child)
            joined = below.table.c[self.record.embedded.key] == self.table.c.id
            chosen = chosen.add_columns(*below.columns).outerjoin_from(self.table, below.table, joined)
            chosen = chosen.order_by(below.table.c.id)
        return Statement(purpose, chosen)

    def _exists(self, purpose: str, *conditions: ColumnElement[bool]) -> Statement:
        return Statement(purpose, select(self.table.c.id).where(*conditions, *self.visible()))

    def _page(self, listing: Listing) -> Statement:
        keys = self._keys(listing)
        chosen = select(*self.columns).where(*self.visible(), *map(self._condition, listing.conditions))
        if listing.owned:
            chosen = chosen.where(*self.owned())
        if listing.after:
            chosen = chosen.where(self._beyond(keys, descending=listing.descending))
        order = [key.desc() if listing.descending else key for key in keys]
        chosen = chosen.order_by(*order).limit(bindparam("limit", type_=BIG))
        if listing.offset:
            chosen = chosen.offset(bindparam("offset", type_=BIG))
        if self.record.embedded and listing.embed:
            names = [key.name for key in keys]
            chosen = self._with_children(chosen, names, descending=listing.descending)
        purpose = f"a page of {self.record.plural} by {listing.sort}"
        return Statement(purpose, chosen, bounded=self._is_bounded(listing))

    def _column(self, name: str) -> ColumnElement[Any]:
        return self.table.c[name]

    def _keys(self, listing: Listing) -> list[ColumnElement[Any]]:
        """The columns that a list is ordered by; the last one is unique."""
        c = self.table.c
        return [c.id] if listing.sort in ("id", "created_at") else [c[listing.sort], c.id]

    def _beyond(self, keys: list[ColumnElement[Any]], *, descending: bool) -> ColumnElement[bool]:
        """The condition that a row comes after the last item seen."""
        if len(keys) == 1:
            after: BindParameter[Any] = bindparam("after_id")
            return keys[0] < after if descending else keys[0] > after
        position = tuple_(bindparam("after_key", type_=keys[0].type), bindparam("after_id"))
        return tuple_(*keys) < position if descending else tuple_(*keys) > position

    def _is_bounded(self, listing: Listing) -> bool:
        """Whether one index yields the page in order, so that only the rows of the page are read."""
        columns = {condition.column for condition in listing.conditions} - {"id"}
        if listing.owned:
            columns.add(self._owner_column)
        by_id = listing.sort in ("id", "created_at")
        if not columns:
            return by_id or not listing.conditions
        if columns == {listing.sort}:
            return True
        exact = all(each.operator == "eq" for each in listing.conditions if each.column != "id")
        return by_id and exact and len(columns) == 1 and columns <= self._indexed

    @property
    def _indexed(self) -> set[str]:
        leading = [next(iter(index.columns)).name for index in self.table.indexes]
        return {"id", next(iter(self.table.primary_key.columns)).name, *leading}

    @property
    def _owner_column(self) -> str:
        if self.record.is_owner:
            return "id"
        return next((key.name for key, link in parents(self.record) if link.parent.is_owner), "owner")

    def _condition(self, condition: Condition) -> ColumnElement[bool]:
        column = self.table.c[condition.column]
        value = bindparam(condition.name, type_=column.type)
        match condition.operator:
            case "gte":
                return column >= value
            case "gt":
                return column > value
            case "lte":
                return column <= value
            case "lt":
                return column < value
            case _:
                return column == value

    def visible(self) -> list[ColumnElement[bool]]:
        """The conditions that rows have not been deleted."""
        return [self.table.c.deleted_at.is_(None)] if self.record.hides_deleted else []

    def owned(self) -> list[ColumnElement[bool]]:
        """The conditions that rows belong to the user `owner`."""
        owned = ownership(self.record)
        return [] if owned is None else [owned]

    def _with_children(
        self, chosen: Select[Any], keys: list[str], *, descending: bool = False
    ) -> Select[Any]:
        """The chosen parents with their children: rows of parent columns, then child columns, in order."""
        if self.record.embedded is None:
            return chosen
        parent, key = chosen.subquery("parent"), self.record.embedded.key
        children = statements_of(self.record.embedded.child)
        order: list[ColumnElement[Any]] = [
            parent.c[name].desc() if descending else parent.c[name] for name in keys
        ]
        return (
            select(*parent.c, *children.columns)
            .join_from(parent, children.table, children.table.c[key] == parent.c.id, isouter=True)
            .order_by(*order, children.table.c.id)
        )

    def _update_clause(self) -> Any:
        c = self.table.c
        own = {*self.names, *map(folded, members(self.record))} - {"id", "created_at"}
        values = {
            column.name: bindparam(f"new_{column.name}", type_=column.type)
            for column in c
            if column.name in own
        }
        return self.table.update().where(c.id == bindparam("at_id")).values(values)

    def _delete_clause(self, by_id: ColumnElement[bool]) -> Any:
        if not self.record.hides_deleted:
            return self.table.delete().where(by_id)
        values = {"deleted_at": bindparam("now"), "version": self.table.c.version + ONE}
        return self.table.update().where(by_id).values(values)


class LogStatements(RecordStatements[R]):
    """The statements of a log, which is read in the order of (xid, seq) and only below the horizon."""

    def _column(self, name: str) -> ColumnElement[Any]:
        constants = {"specversion": "1.0", "datacontenttype": "application/json", "version": 1}
        return literal(constants[name]).label(name) if name in constants else self.table.c[name]

    def _keys(self, listing: Listing) -> list[ColumnElement[Any]]:
        del listing
        return [self.table.c.xid, self.table.c.seq]

    def _beyond(self, keys: list[ColumnElement[Any]], *, descending: bool) -> ColumnElement[bool]:
        """The condition that an event comes after the last one seen; all events do once that one is deleted.

        SQLite seeks a pair by its first half only and would scan the whole log; there, `xid` is always 0.
        """
        seen = self.table.alias("seen")
        here = seen.c.id == bindparam("after_id")
        xid, seq = (func.coalesce(func.max(c), literal_column("0")) for c in (seen.c.xid, seen.c.seq))
        last, pair = select(seq).where(here).scalar_subquery(), select(xid, seq).where(here).scalar_subquery()
        alone = keys[1] < last if descending else keys[1] > last
        return per_dialect(
            sqlite=and_(keys[0] == literal_column("0"), alone),
            postgresql=tuple_(*keys) < pair if descending else tuple_(*keys) > pair,
        )

    def visible(self) -> list[ColumnElement[bool]]:
        return [below_horizon()]


_statements: dict[type[Record], RecordStatements[Any]] = {}


def statements_of(record: type[R]) -> RecordStatements[R]:
    """The statements of a record, which are made once."""
    if record not in _statements:
        _statements[record] = (LogStatements if record.is_log else RecordStatements)(record)
    return _statements[record]


def ownership(record: type[Record], of: FromClause | None = None) -> ColumnElement[bool] | None:
    """The condition that rows belong to the user `owner`, by foreign keys; None if users own no such rows.

    `of` replaces the record's table, such as an alias.
    """
    rows = table(record) if of is None else of
    if record.is_owner:
        return rows.c.id == bindparam("owner")
    for key, link in parents(record):
        if link.parent.is_owner:
            return rows.c[key.name] == bindparam("owner")
        above = table(link.parent)
        for upper, upper_link in parents(link.parent):
            if upper_link.parent.is_owner:
                mine = select(above.c.id).where(above.c[upper.name] == bindparam("owner"))
                return rows.c[key.name].in_(mine)
    return None
