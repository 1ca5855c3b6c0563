"""Execution: the values of a plan's fields, fetched level by level, to be put together afterwards.

Each field is resolved once for all objects of its level. A level holds all fields whose sources are known.
The value of an attribute is known at once, so the fields selected of it join the same level. Resolvers that
load run together (`loads.py`), so a level takes one statement for each loader, however many aliases use it.
All of it is one task: cancelling that stops the work.
"""

from collections.abc import Coroutine, Iterable, Sequence
from itertools import chain
from types import CoroutineType
from typing import Any, cast

from graphql.pyutils import is_iterable

from tradepost.graphql.field import Attribute, LevelResolver, Partial
from tradepost.graphql.plan import Field, Plan
from tradepost.graphql.variables import Variables

_NOTHING: Sequence[Any] = ()
_NONE = type(None)
_LISTS = {list, tuple}
_LISTS_OR_NONE = {list, tuple, _NONE}

Level = list[tuple[Field, Sequence[Any]]]  # fields, and the sources they are asked for


class Fetched:
    """What was fetched for a plan, by place.

    `columns` hold a field's value for each object of its level, `sources` the objects in these values, flat
    and in order: the sources of the fields selected of them. `clean` is False once a value is a failure, or
    null or no list against the type of its field.
    """

    __slots__ = ("clean", "columns", "sources")

    def __init__(self, size: int) -> None:
        self.columns: list[Sequence[Any]] = [_NOTHING] * size
        self.sources: list[Sequence[Any]] = [_NOTHING] * size
        self.clean = True


def _column(result: Any, count: int) -> list[Any]:
    """What a resolver returned or raised as a column of one value for each source."""
    if isinstance(result, list) and len(result) == count:
        return result
    if not isinstance(result, Exception):
        result = RuntimeError(f"a resolver returned no column of {count}")
    return Partial([result] * count)


async def fetch(
    plan: Plan, variables: Variables, context: Any, roots: Sequence[Any], root_value: Any = None
) -> Fetched:
    """Fetches all values of a plan, with `root_value` for a root field that has no resolver.

    A failure of a resolver becomes the value of its fields; raises only what ends the request: cancellation.
    """
    fetched = Fetched(plan.places)
    level: Level = [(field, roots) for field in plan.selection.fetched]
    while level:
        resolving: list[tuple[Field, int, Coroutine[Any, Any, Any]]] = []
        for field, sources in level:  # which grows by what is there at once
            column = [root_value] if field.resolver is None else _resolved(field, sources, variables, context)
            if isinstance(column, CoroutineType):
                resolving.append((field, len(sources), column))
            else:
                _settle(fetched, field, column, level)
        level = []
        if len(resolving) == 1:  # as on most levels
            field, count, column = resolving[0]
            _settle(fetched, field, _column(await _finished(column), count), level)
        else:
            results = await context.together([column for _, _, column in resolving])
            for (field, count, _), result in zip(resolving, results, strict=True):
                _settle(fetched, field, _column(result, count), level)
    return fetched


def _resolved(field: Field, sources: Sequence[Any], variables: Variables, context: Any) -> Any:
    """A field's column, or the coroutine of a resolver that loads it."""
    resolver = field.resolver
    if isinstance(resolver, Attribute):
        try:
            return resolver.read_all(sources)
        except Exception:  # noqa: BLE001 (it may not be all sources that fail)
            return Partial([_read(resolver, source) for source in sources])
    try:
        result: Any = cast("LevelResolver", resolver).resolve(sources, field.arguments(variables), context)
    except Exception as failure:  # noqa: BLE001 (an error in the answer, at its place)
        result = failure
    return result if isinstance(result, CoroutineType) else _column(result, len(sources))


async def _finished(resolving: Coroutine[Any, Any, Any]) -> Any:
    """What the only resolver of a level returns, or the exception that it raises."""
    try:
        return await resolving
    except Exception as failure:  # noqa: BLE001 (an error in the answer, at its place)
        return failure


def _read(attribute: Attribute, source: Any) -> Any:
    try:
        return attribute.read(source)
    except Exception as failure:  # noqa: BLE001 (an error in the answer, at its place)
        return failure


def _settle(fetched: Fetched, field: Field, column: list[Any], level: Level) -> None:
    """Stores a field's column, and adds the fields selected of its objects to the level."""
    place, selection = cast("int", field.place), field.selection
    fetched.columns[place] = column
    if selection is None:
        if column.__class__ is not list:
            fetched.clean = False
        return
    sources = _sources(field, column)
    if sources is None:
        fetched.clean = False
        column = fetched.columns[place] = [_readable(field, value) for value in column]
        sources = [each for value in column for each in objects_of(field, value)]
    fetched.sources[place] = sources
    if sources and selection.fetched:
        level.extend([(each, sources) for each in selection.fetched])


def _sources(field: Field, column: list[Any]) -> Sequence[Any] | None:
    """The objects in a column, flat and in order; None if the column is not clean."""
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
    """A value that can be read more than once; a list's may be an iterator."""
    if not field.is_list or value.__class__ in (list, tuple) or not is_iterable(value):
        return value
    try:
        return list(value)
    except Exception as failure:  # noqa: BLE001 (an error in the answer, at its place)
        return failure


def objects_of(field: Field, value: Any) -> list[Any]:
    """The objects in a value whose fields are selected: neither failures nor nulls."""
    items: Iterable[Any] = (value,)
    if field.is_list:
        items = value if is_iterable(value) else ()
    return [each for each in items if not (each is None or isinstance(each, Exception))]
