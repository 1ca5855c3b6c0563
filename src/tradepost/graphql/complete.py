"""The answer put together by the letter of the specification (6.4.3): completion, null propagation, paths.

It works on what was fetched for a plan and resolves nothing again. The compiled form (`compiled.py`) does the
same for the usual case, where nothing failed; whatever is not usual is left to this one.
"""

from collections.abc import Callable
from itertools import accumulate
from typing import Any

from graphql import (
    FieldNode,
    GraphQLEnumType,
    GraphQLError,
    GraphQLList,
    GraphQLNonNull,
    GraphQLOutputType,
    GraphQLScalarType,
    Undefined,
)
from graphql.pyutils import inspect, is_iterable

from tradepost.graphql.execute import Fetched, objects_of
from tradepost.graphql.field import Attribute
from tradepost.graphql.plan import Field, Plan, Selection

Path = list[str | int]
Tell = Callable[[Exception, list[FieldNode], Path], dict[str, Any]]


class UnexpectedNull(Exception):
    """A field that may not be null was."""


class _Null(Exception):
    """The error was told; the nearest place that may be null becomes null."""


class Completion:
    """Puts together the answer of one request. `tell` says of a failure what the client is told."""

    def __init__(self, plan: Plan, fetched: Fetched, tell: Tell) -> None:
        self.errors: list[dict[str, Any]] = []
        self._plan = plan
        self._fetched = fetched
        self._tell = tell
        self._starts: dict[Field, list[int]] = {}

    def data(self, root: Any = None) -> dict[str, Any] | None:
        """The data; what went wrong is in `errors`."""
        try:
            return self._object(self._plan.selection, root, 0, [])
        except _Null:
            return None

    def _object(self, selection: Selection, source: Any, index: int, path: Path) -> dict[str, Any]:
        """The object that is number `index` of its level."""
        return {
            field.key: self._field(field, source, index, [*path, field.key]) for field in selection.fields
        }

    def _field(self, field: Field, source: Any, index: int, path: Path) -> Any:
        if field.type is None:
            return field.parent
        try:
            value = self._value(field, source, index)
            start = self._start(field, index) if field.selection else 0
            return self._completed(field, field.type, value, start, path)
        except _Null:
            if field.nullable:
                return None
            raise
        except Exception as failure:  # noqa: BLE001 (told in the answer, at its place)
            return self._failed(failure, field, field.type, path)

    def _value(self, field: Field, source: Any, index: int) -> Any:
        if field.place is not None:
            return self._fetched.columns[field.place][index]
        return field.behind.of(source) if isinstance(field.behind, Attribute) else None

    def _completed(self, field: Field, kind: GraphQLOutputType, value: Any, start: int, path: Path) -> Any:
        """A value of a type; `start` is the number on their level of the objects that it begins with."""
        if isinstance(value, Exception):
            raise value
        if isinstance(kind, GraphQLNonNull):
            if value is None:
                message = f"Cannot return null for non-nullable field {field.parent}.{field.name}."
                raise UnexpectedNull(message)
            kind = kind.of_type
        if value is None:
            return None
        if isinstance(kind, GraphQLList):
            return self._list(field, kind.of_type, value, start, path)
        if isinstance(kind, GraphQLScalarType | GraphQLEnumType):
            return shown(kind, value)
        if field.selection is None:
            raise TypeError(kind)
        return self._object(field.selection, value, start, path)

    def _list(self, field: Field, kind: GraphQLOutputType, value: Any, start: int, path: Path) -> list[Any]:
        if not is_iterable(value):
            message = f"Expected Iterable, but did not find one for field '{field.parent}.{field.name}'."
            raise GraphQLError(message)
        found: list[Any] = []
        for position, item in enumerate(value):
            found.append(self._item(field, kind, item, start, [*path, position]))
            if not (item is None or isinstance(item, Exception)):
                start += 1
        return found

    def _item(self, field: Field, kind: GraphQLOutputType, item: Any, start: int, path: Path) -> Any:
        try:
            return self._completed(field, kind, item, start, path)
        except _Null:
            if field.items_nullable:
                return None
            raise
        except Exception as failure:  # noqa: BLE001 (told in the answer, at its place)
            return self._failed(failure, field, kind, path)

    def _failed(self, failure: Exception, field: Field, kind: GraphQLOutputType, path: Path) -> None:
        """Tells of a failure; null stands in its place, or in that of what cannot be without it."""
        self.errors.append(self._tell(failure, field.nodes, path))
        if isinstance(kind, GraphQLNonNull):
            raise _Null from None

    def _start(self, field: Field, index: int) -> int:
        """Where among the sources of a field's selection those of the object `index` begin."""
        if field.place is None:
            return index  # it is the source itself
        starts = self._starts.get(field)
        if starts is None:
            column = self._fetched.columns[field.place]
            starts = self._starts[field] = [
                0,
                *accumulate(len(objects_of(field, value)) for value in column),
            ]
        return starts[index]


def shown(kind: GraphQLScalarType | GraphQLEnumType, value: Any) -> Any:
    """A leaf as JSON has it; raises what the type says of a value that it cannot show."""
    found = kind.coerce_output_value(value)
    if found is None or found is Undefined:
        message = (
            f"Expected `{inspect(kind)}.coerce_output_value({inspect(value)})` to return non-nullable value, "
            f"returned: {inspect(found)}"
        )
        raise TypeError(message)
    return found
