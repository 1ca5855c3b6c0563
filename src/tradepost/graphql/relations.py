"""What is read of the records by level: one by its id, the children of a parent, pages of them, and counts.

Everything here is derived from the records' foreign keys; a field of the schema is bound to one of these by
its name (`binding.py`).
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
from tradepost.storage.plain import Listing, plain
from tradepost.storage.statement import Statement

FIRST, FIRST_AT_MOST = 20, 100


@dataclass(frozen=True)
class ById:
    """Loads rows by their ids, with `owned` those that are the caller's.

    One alone is loaded by a statement of its own, which is quicker.
    """

    record: type[Record]
    owned: bool = False
    missing: None = None

    async def fetch(self, context: Context, keys: list[str]) -> Mapping[str, Row]:
        given = _owner(self, context)
        if len(keys) == 1:
            one = context.narrowed(level.by_id(self.record, owned=self.owned), self.record)
            row = await context.reading.row(one, id=keys[0], **given)
            return {} if row is None else {keys[0]: row}
        several = context.narrowed(level.by_ids(self.record, owned=self.owned), self.record)
        rows = await context.reading.rows(several, ids=keys, **given)
        return {row[0]: row for row in rows}


@dataclass(frozen=True)
class ByParent:
    """Loads the rows that belong to each parent, whose id is at `key_at` of a row."""

    record: type[Record]
    statement: Statement
    key_at: int
    missing: tuple[()] = ()

    async def fetch(self, context: Context, keys: list[str]) -> Mapping[str, list[Row]]:
        statement = context.narrowed(self.statement, self.record, self.key_at)
        return _by_parent(await context.reading.rows(statement, ids=keys), self.key_at)


@dataclass(frozen=True)
class Count:
    """Loads how many rows belong to each parent; with `owned` of those that are the caller's."""

    statement: Statement
    owned: bool = False
    missing: int = 0

    async def fetch(self, context: Context, keys: list[str]) -> Mapping[str, int]:
        return dict(await context.reading.rows(self.statement, ids=keys, **_owner(self, context)))


@dataclass(frozen=True)
class Total:
    """Loads how many rows there are, or a user has; the key is the user's id or None."""

    statement: Statement
    missing: int = 0

    async def fetch(self, context: Context, keys: list[str | None]) -> Mapping[str | None, int]:
        given = {} if keys[0] is None else {"owner": keys[0]}
        return {keys[0]: (await context.reading.rows(self.statement, **given))[0][0]}


class Page(NamedTuple):
    """A page of rows, whether there are more on either side, and how to count them all."""

    rows: list[Row]
    has_next: bool
    has_previous: bool
    counter: Count | Total
    counted: str | None


@dataclass(frozen=True)
class Pages:
    """Loads a page for each parent; with `owned` of what is the caller's."""

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
        given = {"after": self.after, "more": self.first, **_owner(self, context)}
        statement = context.narrowed(self.statement, self.record, self.key_at)
        found = _by_parent(await context.reading.rows(statement, ids=keys, **given), self.key_at)
        return {key: self._page(key, found.get(key, [])) for key in keys}

    def _page(self, key: str, rows: list[Row]) -> Page:
        return Page(rows[: self.first], len(rows) > self.first, bool(self.after), self.counter, key)


class One:
    """The record that a foreign key of the source names, or null."""

    def __init__(self, resource: Resource, key_at: int) -> None:
        self._resource = resource
        self._key_at = key_at
        self._any, self._own = ById(resource.record), ById(resource.record, owned=True)

    async def resolve(self, sources: Sequence[Row], args: Args, context: Context) -> list[Row | None]:
        del args
        context.admit(self._resource)
        at, loader = self._key_at, self._own if context.owns(self._resource) else self._any
        return await context.load(loader, [source[at] for source in sources])


class Item:
    """The record whose id is given, or null."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._any, self._own = ById(resource.record), ById(resource.record, owned=True)

    async def resolve(self, sources: Sequence[Any], args: Args, context: Context) -> list[Row | None]:
        context.admit(self._resource)
        loader = self._own if context.owns(self._resource) else self._any
        found = await context.load(loader, [_id(args["id"])])
        return found * len(sources)


class Children:
    """All records that are part of the source: whoever is shown it is shown them, as in REST."""

    def __init__(self, resource: Resource, key: str) -> None:
        names = plain(resource.record).names
        self._loader = ByParent(resource.record, level.children(resource.record, key), names.index(key))

    async def resolve(self, sources: Sequence[Row], args: Args, context: Context) -> list[Sequence[Row]]:
        del args
        return await context.load(self._loader, [source[0] for source in sources])


class Connection:
    """A page of the records that belong to the source."""

    def __init__(self, resource: Resource, key: str) -> None:
        self._resource = resource
        self._key_at = plain(resource.record).names.index(key)
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
    """Loads a list that belongs to nobody in particular; the key is its values."""

    record: type[Record]
    statement: Statement
    missing: tuple[()] = ()

    async def fetch(
        self, context: Context, keys: list[tuple[tuple[str, Any], ...]]
    ) -> Mapping[Any, list[Row]]:
        statement = context.narrowed(self.statement, self.record)
        return {key: await context.reading.rows(statement, **_values(key)) for key in keys}


class All:
    """A page of all records; for a key that acts for a user, of theirs."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    async def resolve(self, sources: Sequence[Any], args: Args, context: Context) -> list[Page]:
        context.admit(self._resource)
        record, first, after = self._resource.record, first_of(args), after_of(args)
        owner = context.caller.user_id if context.owns(self._resource) else None
        listing = Listing(after=bool(after), owned=owner is not None, embed=False)
        values = {"limit": first + 1, "after_id": after or None, "owner": owner}
        key = tuple((name, value) for name, value in values.items() if value is not None)
        (rows,) = await context.load(Rows(record, plain(record).page(listing)), [key])
        counter = Total(level.total(record, owned=owner is not None))
        return [Page(rows[:first], len(rows) > first, bool(after), counter, owner)] * len(sources)


async def total_count(sources: Sequence[Page], args: Args, context: Context) -> list[int]:
    """How many there are on all pages together; all sources of a level are pages of one kind."""
    del args
    return await context.load(sources[0].counter, [source.counted for source in sources])


def first_of(args: Args, usual: int = FIRST, most: int = FIRST_AT_MOST) -> int:
    """How many items are asked for."""
    first: int | None = args.get("first")
    if first is None:
        return usual
    if first < 0:
        message = "has to be 0 or more"
        raise invalid(("first",), message, "out_of_range")
    return min(first, most)


def after_of(args: Args) -> str:
    """The id behind which items are asked for: cursors are ids. Empty for none."""
    after: str | None = args.get("after")
    if after is None:
        return ""
    if not is_id(after):
        message = "is not a cursor that was given out"
        raise invalid(("after",), message, "invalid")
    return after


def _owner(loader: ById | Count | Pages, context: Context) -> dict[str, Any]:
    return {"owner": context.caller.user_id} if loader.owned else {}


def _id(given: str) -> str:
    """An id as it can be asked of the database; what cannot be an id is none that is there."""
    return given if is_id(given) else ""


def _values(key: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    return {name: list(value) if value.__class__ is tuple else value for name, value in key}


def _by_parent(rows: list[Row], key_at: int) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        below = found.get(row[key_at])
        if below is None:
            found[row[key_at]] = [row]
        else:
            below.append(row)
    return found
