"""Execution: the values of a plan's fields, fetched level by level, to be put together afterwards.

Each field is resolved once for all the objects of its level. Resolvers that wait for loads are stepped until
every one of them waits; then each load is made, once for all who wait for it, whatever aliases asked. It is
one task from beginning to end: whoever cancels it stops the work, for there is no other.
"""

from collections.abc import Coroutine, Generator, Iterable, Mapping, Sequence
from itertools import chain
from types import CoroutineType
from typing import Any, Protocol, cast

from graphql.pyutils import is_iterable

from tradepost.graphql.deadline import Rest
from tradepost.graphql.field import Attribute, Partial, Resolver
from tradepost.graphql.plan import Field, Plan
from tradepost.graphql.variables import Variables

_NOTHING: Sequence[Any] = ()
_NONE = type(None)
_LISTS = {list, tuple}
_LISTS_OR_NONE = {list, tuple, _NONE}

Level = list[tuple[Field, Sequence[Any]]]  # fields, and the sources they are asked for
Calls = list[
    tuple[Coroutine[Any, Any, list[Any]], int]
]  # resolvers that wait, and how many sources they have


class Fetched:
    """What was fetched for a plan, by place.

    `columns` hold a field's value for each object of its level; `sources` those objects, flat and in order,
    that the field's own selection is made of. `usual` says that nothing went wrong so far.
    """

    __slots__ = ("columns", "sources", "usual")

    def __init__(self, size: int) -> None:
        self.columns: list[Sequence[Any]] = [_NOTHING] * size
        self.sources: list[Sequence[Any]] = [_NOTHING] * size
        self.usual = True


class Loader(Protocol):
    """What loads values by their keys, for one request at a time. Equal loaders load the same."""

    def __hash__(self) -> int: ...

    async def fetch(self, context: Any, keys: list[Any]) -> Mapping[Any, Any]:
        """The values found, by key, in one statement."""

    @property
    def missing(self) -> Any:
        """The value of a key that was not found."""


class _Batch:
    """The keys that one load is to be made of, and why it failed if it did."""

    __slots__ = ("failure", "keys", "loader")

    def __init__(self, loader: Loader) -> None:
        self.loader = loader
        self.keys: dict[Any, None] = {}
        self.failure: Exception | None = None


class _Loaded:
    """What a loader has loaded, and the batch that is to be loaded next."""

    __slots__ = ("next", "values")

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}
        self.next: _Batch | None = None


class Loads:
    """What one request has loaded and waits for. Never shared between requests.

    `alone` is the request's context while nobody else could join a load: it is then made at once.
    """

    __slots__ = ("_loaded", "_wanted", "alone")

    def __init__(self) -> None:
        self.alone: Any = None
        self._loaded: dict[Loader, _Loaded] = {}
        self._wanted: list[_Loaded] = []

    async def load(self, loader: Loader, keys: Sequence[Any]) -> list[Any]:
        """The values of `keys`, loaded together with whatever else waits for the same loader."""
        loaded = self._loaded.get(loader)
        if loaded is None:
            loaded = self._loaded[loader] = _Loaded()
        values = loaded.values
        missing = [key for key in keys if key not in values] if values else keys
        if missing and self.alone is not None:
            await _load(loader, dict.fromkeys(missing), values, self.alone)
        elif missing:
            batch = loaded.next
            if batch is None:
                batch = loaded.next = _Batch(loader)
                self._wanted.append(loaded)
            batch.keys |= dict.fromkeys(missing)
            await PARKED
            if batch.failure is not None:
                raise batch.failure
        return [values[key] for key in keys]

    async def make(self, context: Any) -> None:
        """Makes every load that is waited for."""
        wanted, self._wanted = self._wanted, []
        batches = [(loaded.values, cast("_Batch", loaded.next)) for loaded in wanted]
        for loaded in wanted:
            loaded.next = None
        for values, batch in batches:
            try:
                await _load(batch.loader, batch.keys, values, context)
            except Exception as failure:  # noqa: BLE001 (told to whoever waits for it)
                batch.failure = failure


async def _load(loader: Loader, keys: dict[Any, None], values: dict[Any, Any], context: Any) -> None:
    """Loads `keys` into `values`."""
    found = await loader.fetch(context, list(keys))
    values.update(found)
    if len(found) < len(keys):
        for key in keys.keys() - found.keys():
            values[key] = loader.missing


class _Parked:
    """Awaited by a load until it is made."""

    def __await__(self) -> Generator["_Parked"]:
        yield self


PARKED = _Parked()


async def together(calls: Calls, context: Any) -> list[list[Any]]:
    """Runs resolvers side by side to their ends; their columns.

    One that is alone, or waits for something other than loads, has its loads made as it asks for them. A
    failure becomes a column of it. Raises only what is to end the request: cancellation.
    """
    if len(calls) == 1:
        return [await _alone(*calls[0], context)]
    columns: list[list[Any]] = [[]] * len(calls)
    waiting = list(range(len(calls)))
    try:
        while waiting:
            parked = []
            for index in waiting:
                coroutine, count = calls[index]
                try:
                    waits = coroutine.send(None)
                    if waits is PARKED:
                        parked.append(index)
                    else:
                        columns[index] = await _alone(Rest(coroutine, waits), count, context)
                except StopIteration as done:
                    columns[index] = column_of(done.value, count)
                except Exception as failure:  # noqa: BLE001 (told in the answer, at its place)
                    columns[index] = failed(failure, count)
            waiting = parked
            if waiting:
                await context.loads.make(context)
    finally:
        for coroutine, _ in calls:
            coroutine.close()
    return columns


async def _alone(resolving: Any, count: int, context: Any) -> list[Any]:
    """The column of a resolver beside which no other runs."""
    if isinstance(resolving, list):
        return resolving
    context.loads.alone = context
    try:
        return column_of(await resolving, count)
    except Exception as failure:  # noqa: BLE001 (told in the answer, at its place)
        return failed(failure, count)
    finally:
        context.loads.alone = None


def failed(failure: Exception, count: int) -> Partial:
    """A column of one failure."""
    return Partial([failure] * count)


def column_of(found: Any, count: int) -> list[Any]:
    """What a resolver returned, if it is a column of as many values as there are sources."""
    if isinstance(found, list) and len(found) == count:
        return found
    return failed(RuntimeError(f"a resolver returned no column of {count}"), count)


async def fetch(
    plan: Plan, variables: Variables, context: Any, roots: Sequence[Any], given: list[Any] | None = None
) -> Fetched:
    """Fetches all values of a plan. With `given`, that is the value of its one root field already."""
    fetched = Fetched(plan.places)
    level: Level = []
    if given is None:
        level = [(field, roots) for field in plan.selection.fetched]
    else:
        _settle(fetched, plan.selection.fetched[0], given, level)
    while level:
        if len(level) == 1 and isinstance(level[0][0].behind, Resolver):  # as most levels are
            field, sources = level.pop()
            column = await _alone(_resolved(field, sources, variables, context), len(sources), context)
            _settle(fetched, field, column, level)
            continue
        calls: Calls = []
        asked: list[Field] = []
        for field, sources in level:  # which grows by what is there at once
            column = _resolved(field, sources, variables, context)
            if isinstance(column, CoroutineType):
                calls.append((column, len(sources)))
                asked.append(field)
            else:
                _settle(fetched, field, column, level)
        level = []
        if calls:
            for field, column in zip(asked, await together(calls, context), strict=True):
                _settle(fetched, field, column, level)
    return fetched


def _resolved(field: Field, sources: Sequence[Any], variables: Variables, context: Any) -> Any:
    """A field's column, or the coroutine of a resolver that waits for its loads."""
    behind = field.behind
    try:
        if isinstance(behind, Attribute):
            return behind.of_all(sources)
        found: Any = cast("Resolver", behind).resolve(sources, field.arguments(variables), context)
        return found if isinstance(found, CoroutineType) else column_of(found, len(sources))
    except Exception as failure:  # noqa: BLE001 (told in the answer, at its place)
        if isinstance(behind, Attribute):
            return Partial([_read(behind, source) for source in sources])
        return failed(failure, len(sources))


def _read(behind: Attribute, source: Any) -> Any:
    try:
        return behind.of(source)
    except Exception as failure:  # noqa: BLE001 (told in the answer, at its place)
        return failure


def _settle(fetched: Fetched, field: Field, column: list[Any], level: Level) -> None:
    """Takes a field's column, and puts the fields of its own selection on the level."""
    place, selection = cast("int", field.place), field.selection
    fetched.columns[place] = column
    if selection is None:
        if column.__class__ is not list:
            fetched.usual = False
        return
    sources = _sources(field, column)
    if sources is None:
        fetched.usual = False
        column = fetched.columns[place] = [_readable(field, value) for value in column]
        sources = [each for value in column for each in objects_of(field, value)]
    fetched.sources[place] = sources
    if sources and selection.fetched:
        level.extend([(each, sources) for each in selection.fetched])


def _sources(field: Field, column: list[Any]) -> Sequence[Any] | None:
    """The objects in a column, flat and in order; None if something in it is not as it usually is."""
    if column.__class__ is not list:
        return None
    flat, nullable = column, field.nullable
    if field.is_list:
        if not _LISTS.issuperset(map(type, column)):
            if not (nullable and _LISTS_OR_NONE.issuperset(map(type, column))):
                return None
            column = list(filter(None, column))
        flat = column[0] if len(column) == 1 else list(chain.from_iterable(column))
        nullable = field.items_nullable
    kinds = set(map(type, flat))
    if any(map(_is_failure, kinds)):
        return None
    if _NONE in kinds:
        return [each for each in flat if each is not None] if nullable else None
    return flat


def _is_failure(kind: type) -> bool:
    return issubclass(kind, Exception)


def _readable(field: Field, value: Any) -> Any:
    """A list's value as something that can be read more than once."""
    if not field.is_list or value.__class__ in (list, tuple) or not is_iterable(value):
        return value
    try:
        return list(value)
    except Exception as failure:  # noqa: BLE001 (told in the answer, at its place)
        return failure


def objects_of(field: Field, value: Any) -> list[Any]:
    """The objects in a value that its selection is made of: not what failed or is null."""
    items: Iterable[Any] = (value,)
    if field.is_list:
        items = value if is_iterable(value) else ()
    return [each for each in items if not (each is None or isinstance(each, Exception))]
