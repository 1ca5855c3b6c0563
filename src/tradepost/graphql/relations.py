"""What is read of the records by level: one by its id, the children of a parent, pages of them, and counts.

Everything here is derived from the records' foreign keys; a field of the schema is bound to one of these by
its name (`binding.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tradepost.domain.ids import is_id
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
    """Loads rows by their ids."""

    statement: Statement
    owned: bool = False
    missing: None = None

    async def fetch(self, context: Context, keys: list[str]) -> Mapping[str, Row]:
        given = {"owner": context.caller.user_id} if self.owned else {}
        rows = await context.reading.rows(self.statement, ids=keys, **given)
        return {row[0]: row for row in rows}


@dataclass(frozen=True)
class ByParent:
    """Loads the rows that belong to each parent, whose id is at `key_at` of a row."""

    statement: Statement
    key_at: int
    missing: tuple[()] = ()

    async def fetch(self, context: Context, keys: list[str]) -> Mapping[str, list[Row]]:
        return _by_parent(await context.reading.rows(self.statement, ids=keys), self.key_at)


@dataclass(frozen=True)
class Count:
    """Loads how many rows belong to each parent."""

    statement: Statement
    missing: int = 0

    async def fetch(self, context: Context, keys: list[str]) -> Mapping[str, int]:
        return dict(await context.reading.rows(self.statement, ids=keys))


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
    """Loads a page for each parent."""

    statement: Statement
    key_at: int
    counter: Count
    first: int
    after: str

    @property
    def missing(self) -> Page:
        return Page([], False, bool(self.after), self.counter, None)

    async def fetch(self, context: Context, keys: list[str]) -> Mapping[str, Page]:
        rows = await context.reading.rows(self.statement, ids=keys, after=self.after, more=self.first)
        found = _by_parent(rows, self.key_at)
        return {key: self._page(key, found.get(key, [])) for key in keys}

    def _page(self, key: str, rows: list[Row]) -> Page:
        return Page(rows[: self.first], len(rows) > self.first, bool(self.after), self.counter, key)


class One:
    """The record that a foreign key of the source names, or null."""

    def __init__(self, resource: Resource, key_at: int) -> None:
        self._resource = resource
        self._key_at = key_at
        self._loader = ById(level.by_ids(resource.record))

    async def resolve(self, sources: Sequence[Row], args: Args, context: Context) -> list[Row | None]:
        del args
        context.admit(self._resource)
        at = self._key_at
        return await context.loads.load(self._loader, [source[at] for source in sources])


class Item:
    """The record whose id is given, or null."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._any = ById(level.by_ids(resource.record))
        self._own = (
            ById(level.by_ids(resource.record, owned=True), owned=True)
            if resource.user_keys == "own"
            else self._any
        )

    async def resolve(self, sources: Sequence[Any], args: Args, context: Context) -> list[Row | None]:
        context.admit(self._resource)
        loader = self._any if context.caller.user_id is None else self._own
        found = await context.loads.load(loader, [_id(args["id"])])
        return found * len(sources)


class Children:
    """All records that are part of the source: whoever is shown it is shown them, as in REST."""

    def __init__(self, resource: Resource, key: str) -> None:
        names = plain(resource.record).names
        self._loader = ByParent(level.children(resource.record, key), names.index(key))

    async def resolve(self, sources: Sequence[Row], args: Args, context: Context) -> list[Sequence[Row]]:
        del args
        return await context.loads.load(self._loader, [source[0] for source in sources])


class Connection:
    """A page of the records that belong to the source."""

    def __init__(self, resource: Resource, key: str) -> None:
        self._resource = resource
        self._statement = level.pages(resource.record, key)
        self._key_at = plain(resource.record).names.index(key)
        self._counter = Count(level.counts(resource.record, key))

    async def resolve(self, sources: Sequence[Row], args: Args, context: Context) -> list[Page]:
        context.admit(self._resource)
        first, after = first_of(args), after_of(args)
        pages = Pages(self._statement, self._key_at, self._counter, first, after)
        return await context.loads.load(pages, [source[0] for source in sources])


@dataclass(frozen=True)
class Rows:
    """Loads a list that belongs to nobody in particular; the key is its values."""

    statement: Statement
    missing: tuple[()] = ()

    async def fetch(
        self, context: Context, keys: list[tuple[tuple[str, Any], ...]]
    ) -> Mapping[Any, list[Row]]:
        return {key: await context.reading.rows(self.statement, **_values(key)) for key in keys}


class All:
    """A page of all records; for a key that acts for a user, of theirs."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    async def resolve(self, sources: Sequence[Any], args: Args, context: Context) -> list[Page]:
        context.admit(self._resource)
        record, first, after = self._resource.record, first_of(args), after_of(args)
        owner = context.caller.user_id if self._resource.user_keys == "own" else None
        listing = Listing(after=bool(after), owned=owner is not None, embed=False)
        values = {"limit": first + 1, "after_id": after or None, "owner": owner}
        key = tuple((name, value) for name, value in values.items() if value is not None)
        (rows,) = await context.loads.load(Rows(plain(record).page(listing)), [key])
        counter = Total(level.total(record, owned=owner is not None))
        return [Page(rows[:first], len(rows) > first, bool(after), counter, owner)] * len(sources)


async def total_count(sources: Sequence[Page], args: Args, context: Context) -> list[int]:
    """How many there are on all pages together; all sources of a level are pages of one kind."""
    del args
    return await context.loads.load(sources[0].counter, [source.counted for source in sources])


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
