"""Execution: the values of a plan's fields, fetched level by level, to be put together afterwards.

Each field is resolved once for all the objects of its level. A level is made of all fields whose sources are
known; what an attribute or a resolver has at once is settled at once, and its own selection joins the level.
Resolvers that load run together (`loads.py`), so that a level takes one statement for each loader, whatever
aliases asked. It is one task from beginning to end: whoever cancels it stops the work, for there is no other.
"""

from collections.abc import Coroutine, Iterable, Sequence
from itertools import chain
from types import CoroutineType
from typing import Any, cast

from graphql.pyutils import is_iterable

from tradepost.graphql.field import Attribute, Partial, Resolver
from tradepost.graphql.plan import Field, Plan
from tradepost.graphql.variables import Variables

_NOTHING: Sequence[Any] = ()
_NONE = type(None)
_LISTS = {list, tuple}
_LISTS_OR_NONE = {list, tuple, _NONE}

Level = list[tuple[Field, Sequence[Any]]]  # fields, and the sources they are asked for


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


def _column(result: Any, count: int) -> list[Any]:
    """What a resolver returned or raised as a column of one value for each source."""
    if isinstance(result, list) and len(result) == count:
        return result
    if not isinstance(result, Exception):
        result = RuntimeError(f"a resolver returned no column of {count}")
    return Partial([result] * count)


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
        resolving: list[tuple[Field, int, Coroutine[Any, Any, Any]]] = []
        for field, sources in level:  # which grows by what is there at once
            column = _resolved(field, sources, variables, context)
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
    behind = field.behind
    if isinstance(behind, Attribute):
        try:
            return behind.of_all(sources)
        except Exception:  # noqa: BLE001 (some of the sources may have it all the same)
            return Partial([_read(behind, source) for source in sources])
    try:
        result: Any = cast("Resolver", behind).resolve(sources, field.arguments(variables), context)
    except Exception as failure:  # noqa: BLE001 (told in the answer, at its place)
        result = failure
    return result if isinstance(result, CoroutineType) else _column(result, len(sources))


async def _finished(resolving: Coroutine[Any, Any, Any]) -> Any:
    """What a resolver returns, beside which no other runs, or the exception that it raises."""
    try:
        return await resolving
    except Exception as failure:  # noqa: BLE001 (told in the answer, at its place)
        return failure


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
