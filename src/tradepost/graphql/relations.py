"""Loaders and resolvers of records: one by its id, the children of a parent, pages of them, and counts.

All are derived from the foreign keys of the records; `schema.py` binds fields to them by their names. Each
resolver of a resource raises `Forbidden` unless the caller may read it (`Context.admit`); a key that acts for
a user is shown that user's rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tradepost.domain.ids import is_id
from tradepost.domain.record import Record
from tradepost.graphql.context import Context
from tradepost.graphql.field import Args
from tradepost.problems import invalid
from tradepost.resource import Resource
from tradepost.storage import level
from tradepost.storage.database import Row
from tradepost.storage.record_statements import Listing, statements_of
from tradepost.storage.statement import Statement

FIRST, MAX_FIRST = 20, 100


@dataclass(frozen=True)
class ById:
    """Loads rows by their ids, with `owned` only those of the caller's user.

    A single id has a statement of its own, which is faster.
    """

    record: type[Record]
    owned: bool = False
    missing: None = None

    async def fetch(self, context: Context, keys: list[str]) -> Mapping[str, Row]:
        owner = _owner(self, context)
        if len(keys) == 1:
            one = context.projected(level.by_id(self.record, owned=self.owned), self.record)
            row = await context.reading.row(one, id=keys[0], **owner)
            return {} if row is None else {keys[0]: row}
        several = context.projected(level.by_ids(self.record, owned=self.owned), self.record)
        rows = await context.reading.rows(several, ids=keys, **owner)
        return {row[0]: row for row in rows}


@dataclass(frozen=True)
class ByParent:
    """Loads the rows of each parent, whose id has the position `key_at` in a row."""

    record: type[Record]
    statement: Statement
    key_at: int
    missing: tuple[()] = ()

    async def fetch(self, context: Context, keys: list[str]) -> Mapping[str, list[Row]]:
        statement = context.projected(self.statement, self.record, self.key_at)
        return _by_parent(await context.reading.rows(statement, ids=keys), self.key_at)


@dataclass(frozen=True)
class Count:
    """Loads the number of rows of each parent, with `owned` only of those of the caller's user."""

    statement: Statement
    owned: bool = False
    missing: int = 0

    async def fetch(self, context: Context, keys: list[str]) -> Mapping[str, int]:
        return dict(await context.reading.rows(self.statement, ids=keys, **_owner(self, context)))


@dataclass(frozen=True)
class Total:
    """Loads the number of all rows, or of a user's; the key is the user's id or None."""

    statement: Statement
    missing: int = 0

    async def fetch(self, context: Context, keys: list[str | None]) -> Mapping[str | None, int]:
        owner = {} if keys[0] is None else {"owner": keys[0]}
        return {keys[0]: (await context.reading.rows(self.statement, **owner))[0][0]}


class Page(NamedTuple):
    """A page of rows, whether there are more on either side, and the loader and key of the total count."""

    rows: list[Row]
    has_next: bool
    has_previous: bool
    counter: Count | Total
    counted: str | None


@dataclass(frozen=True)
class Pages:
    """Loads a page of rows for each parent, with `owned` only of those of the caller's user."""

    record: type[Record]
    statement: Statement
    key_at: int
    counter: Count
    first: int
    after: str
    owned: bool = False

    @property
    def missing(self) -> Page:
        return Page([], False, bool(self.after), self.counter, None)

    async def fetch(self, context: Context, keys: list[str]) -> Mapping[str, Page]:
        values = {"after": self.after, "more": self.first, **_owner(self, context)}
        statement = context.projected(self.statement, self.record, self.key_at)
        rows = _by_parent(await context.reading.rows(statement, ids=keys, **values), self.key_at)
        return {key: self._page(key, rows.get(key, [])) for key in keys}

    def _page(self, key: str, rows: list[Row]) -> Page:
        return Page(rows[: self.first], len(rows) > self.first, bool(self.after), self.counter, key)


class Parent:
    """The record that a foreign key of the source names; null if the caller is not shown it."""

    def __init__(self, resource: Resource, key_at: int) -> None:
        self._resource = resource
        self._key_at = key_at
        self._any, self._own = ById(resource.record), ById(resource.record, owned=True)

    async def resolve(self, sources: Sequence[Row], args: Args, context: Context) -> list[Row | None]:
        del args
        context.admit(self._resource)
        at, loader = self._key_at, self._own if context.owns(self._resource) else self._any
        return await context.load(loader, [source[at] for source in sources])


class ItemById:
    """The record with the id of the argument `id`; null if there is none or the caller is not shown it."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._any, self._own = ById(resource.record), ById(resource.record, owned=True)

    async def resolve(self, sources: Sequence[Any], args: Args, context: Context) -> list[Row | None]:
        context.admit(self._resource)
        loader = self._own if context.owns(self._resource) else self._any
        rows = await context.load(loader, [_id(args["id"])])
        return rows * len(sources)


class Children:
    """All records that are part of the source. Like in REST, a caller who is shown it is shown them."""

    def __init__(self, resource: Resource, key: str) -> None:
        names = statements_of(resource.record).names
        self._loader = ByParent(resource.record, level.children(resource.record, key), names.index(key))

    async def resolve(self, sources: Sequence[Row], args: Args, context: Context) -> list[Sequence[Row]]:
        del args
        return await context.load(self._loader, [source[0] for source in sources])


class Connection:
    """A page of the records that belong to the source, with the arguments of `RootConnection`."""

    def __init__(self, resource: Resource, key: str) -> None:
        self._resource = resource
        self._key_at = statements_of(resource.record).names.index(key)
        both = (False, True)
        self._statements = [level.pages(resource.record, key, owned=owned) for owned in both]
        self._counters = [Count(level.counts(resource.record, key, owned=owned), owned) for owned in both]

    async def resolve(self, sources: Sequence[Row], args: Args, context: Context) -> list[Page]:
        context.admit(self._resource)
        first, after, own = first_of(args), after_of(args), context.owns(self._resource)
        record, statement, counter = self._resource.record, self._statements[own], self._counters[own]
        pages = Pages(record, statement, self._key_at, counter, first, after, own)
        return await context.load(pages, [source[0] for source in sources])


@dataclass(frozen=True)
class Rows:
    """Loads the rows of a statement; a key is the statement's values, as pairs of name and value."""

    record: type[Record]
    statement: Statement
    missing: tuple[()] = ()

    async def fetch(
        self, context: Context, keys: list[tuple[tuple[str, Any], ...]]
    ) -> Mapping[Any, list[Row]]:
        statement = context.projected(self.statement, self.record)
        return {key: await context.reading.rows(statement, **_values(key)) for key in keys}


class RootConnection:
    """A page of all records, or of the caller's user's.

    Arguments: `first`, 0 to 100, by default 20; `after`, a cursor. Raises `Invalid` for others.
    """

    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    async def resolve(self, sources: Sequence[Any], args: Args, context: Context) -> list[Page]:
        context.admit(self._resource)
        record, first, after = self._resource.record, first_of(args), after_of(args)
        owner = context.caller.user_id if context.owns(self._resource) else None
        listing = Listing(after=bool(after), owned=owner is not None, embed=False)
        values = {"limit": first + 1, "after_id": after or None, "owner": owner}
        key = tuple((name, value) for name, value in values.items() if value is not None)
        (rows,) = await context.load(Rows(record, statements_of(record).page(listing)), [key])
        counter = Total(level.total(record, owned=owner is not None))
        return [Page(rows[:first], len(rows) > first, bool(after), counter, owner)] * len(sources)


async def total_count(sources: Sequence[Page], args: Args, context: Context) -> list[int]:
    """The number of records on all pages together; all sources of a level are pages of one field."""
    del args
    return await context.load(sources[0].counter, [source.counted for source in sources])


def first_of(args: Args, default: int = FIRST, maximum: int = MAX_FIRST) -> int:
    """The length of the page, at most `maximum`; raises `Invalid` if `first` is negative."""
    first: int | None = args.get("first")
    if first is None:
        return default
    if first < 0:
        message = "must be at least 0"
        raise invalid(("first",), message, "out_of_range")
    return min(first, maximum)


def after_of(args: Args) -> str:
    """The id after which the page begins, empty for none; raises `Invalid` if `after` is not a cursor."""
    after: str | None = args.get("after")
    if after is None:
        return ""
    if not is_id(after):
        message = "is not a valid cursor; use the endCursor of a page"
        raise invalid(("after",), message, "invalid")
    return after


def _owner(loader: ById | Count | Pages, context: Context) -> dict[str, Any]:
    return {"owner": context.caller.user_id} if loader.owned else {}


def _id(text: str) -> str:
    """An id that the database can look for; a text that is not an id finds nothing."""
    return text if is_id(text) else ""


def _values(key: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    return {name: list(value) if value.__class__ is tuple else value for name, value in key}


def _by_parent(rows: list[Row], key_at: int) -> dict[str, list[Row]]:
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        below = grouped.get(row[key_at])
        if below is None:
            grouped[row[key_at]] = [row]
        else:
            below.append(row)
    return grouped
