"""The answer put together by the rules of the specification (6.4.3): completion, null propagation, paths.

It works on the values fetched for a plan and resolves nothing again. A compiled plan (`compiled.py`) does the
same for clean values, and faster.
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
ToError = Callable[[Exception, list[FieldNode], Path], dict[str, Any]]


class UnexpectedNull(Exception):
    """A field that is declared non-null was null."""


class _Null(Exception):
    """An error was recorded; the nearest nullable place becomes null."""


class Completion:
    """Puts together the answer of one request. `to_error` makes a failure an error of the answer."""

    def __init__(self, plan: Plan, fetched: Fetched, to_error: ToError) -> None:
        self.errors: list[dict[str, Any]] = []
        self._plan = plan
        self._fetched = fetched
        self._to_error = to_error
        self._starts: dict[Field, list[int]] = {}

    def data(self, root: Any = None) -> dict[str, Any] | None:
        """The data, null if an error reaches the root; adds to `errors`."""
        try:
            return self._object(self._plan.selection, root, 0, [])
        except _Null:
            return None

    def _object(self, selection: Selection, source: Any, index: int, path: Path) -> dict[str, Any]:
        """The object with the number `index` on its level."""
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
        except Exception as failure:  # noqa: BLE001 (an error in the answer, at its place)
            return self._failed(failure, field, field.type, path)

    def _value(self, field: Field, source: Any, index: int) -> Any:
        if field.place is not None:
            return self._fetched.columns[field.place][index]
        return field.resolver.read(source) if isinstance(field.resolver, Attribute) else None

    def _completed(self, field: Field, kind: GraphQLOutputType, value: Any, start: int, path: Path) -> Any:
        """A value of a type; `start` is the number, on its level, of the first object in the value."""
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
            return serialized(kind, value)
        if field.selection is None:
            raise TypeError(kind)
        return self._object(field.selection, value, start, path)

    def _list(self, field: Field, kind: GraphQLOutputType, value: Any, start: int, path: Path) -> list[Any]:
        if not is_iterable(value):
            message = f"Expected Iterable, but did not find one for field '{field.parent}.{field.name}'."
            raise GraphQLError(message)
        items: list[Any] = []
        for position, item in enumerate(value):
            items.append(self._item(field, kind, item, start, [*path, position]))
            if not (item is None or isinstance(item, Exception)):
                start += 1
        return items

    def _item(self, field: Field, kind: GraphQLOutputType, item: Any, start: int, path: Path) -> Any:
        try:
            return self._completed(field, kind, item, start, path)
        except _Null:
            if field.items_nullable:
                return None
            raise
        except Exception as failure:  # noqa: BLE001 (an error in the answer, at its place)
            return self._failed(failure, field, kind, path)

    def _failed(self, failure: Exception, field: Field, kind: GraphQLOutputType, path: Path) -> None:
        """Records a failure; returns null for its place, or raises `_Null` where that must not be null."""
        self.errors.append(self._to_error(failure, field.nodes, path))
        if isinstance(kind, GraphQLNonNull):
            raise _Null from None

    def _start(self, field: Field, index: int) -> int:
        """The number of the first source of a field's selection that belongs to the object `index`."""
        if field.place is None:
            return index  # the object is its own source
        starts = self._starts.get(field)
        if starts is None:
            column = self._fetched.columns[field.place]
            starts = self._starts[field] = [
                0,
                *accumulate(len(objects_of(field, value)) for value in column),
            ]
        return starts[index]


def serialized(kind: GraphQLScalarType | GraphQLEnumType, value: Any) -> Any:
    """A leaf as JSON; raises what its type raises for a value that it cannot serialize, or `TypeError`."""
    output = kind.coerce_output_value(value)
    if output is None or output is Undefined:
        message = (
            f"Expected `{inspect(kind)}.coerce_output_value({inspect(value)})` to return non-nullable value, "
            f"returned: {inspect(output)}"
        )
        raise TypeError(message)
    return output
