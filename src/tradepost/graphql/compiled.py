"""A plan as Python: one function, generated for it, that puts clean answers together.

Where it meets a null that must not be or a value of a wrong type, it gives up, and `complete.py` makes the
whole answer from the same fetched values. Its source contains positions, response keys (which are GraphQL
names) and the expressions of attributes, and no other text of a caller.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

from graphql import (
    GraphQLBoolean,
    GraphQLEnumType,
    GraphQLFloat,
    GraphQLID,
    GraphQLInt,
    GraphQLList,
    GraphQLScalarType,
    GraphQLString,
)

from tradepost.graphql.complete import serialized
from tradepost.graphql.execute import Fetched
from tradepost.graphql.field import Attribute
from tradepost.graphql.plan import Field, Plan, Selection, bare

_Function = Callable[[list[Sequence[Any]], list[Sequence[Any]], Sequence[Any]], list[dict[str, Any]]]

_IS_WRONG = {
    GraphQLID: "{0}.__class__ is not str",
    GraphQLString: "{0}.__class__ is not str",
    GraphQLInt: "({0}.__class__ is not int or not -2147483648 <= {0} <= 2147483647)",
    GraphQLFloat: "({0}.__class__ is not float or {0} - {0} != 0)",
    GraphQLBoolean: "{0}.__class__ is not bool",
}


class NeedsCompletion(Exception):
    """A value needs the specification's rules of completion, which generated code does not have."""


class CompiledPlan:
    """The function generated for a plan; `source` is its text."""

    def __init__(self, plan: Plan) -> None:
        self.source, names = _Writer().written(plan)
        exec(self.source, names)  # noqa: S102 (the text is made of our own pieces; see above)
        self._assemble: _Function = names["assemble"]

    def data(self, fetched: Fetched, roots: Sequence[Any]) -> dict[str, Any]:
        """The data of the answer; raises `NeedsCompletion` if this function cannot make it."""
        try:
            return self._assemble(fetched.columns, fetched.sources, roots)[0]
        except Exception as unforeseen:
            raise NeedsCompletion from unforeseen


class _Writer:
    """Writes the function. `p` is a source; other names begin with `_`, which those of attributes do not."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {"_give_up": _give_up}
        self._lines = ["def assemble(_columns, _sources, _roots):"]
        self._made = 0

    def written(self, plan: Plan) -> tuple[str, dict[str, Any]]:
        result = self._selection(plan.selection, "_roots")
        self._lines.append(f"    return {result}")
        return "\n".join(self._lines), self._names

    def _selection(self, selection: Selection, sources: str) -> str:
        """Writes the list of a selection's objects; returns its name."""
        loop = _Loop(sources)
        made = self._object(selection, loop)
        result = self._new()
        if loop.lines:
            self._lines += [
                f"    {result} = []",
                f"    {result}_add = {result}.append",
                f"    {loop.over}:",
                *[f"        {line}" for line in loop.lines],
                f"        {result}_add({made})",
            ]
        else:
            self._lines.append(f"    {result} = [{made} {loop.over}]")
        return result

    def _object(self, selection: Selection, loop: "_Loop") -> str:
        """An object as an expression; adds what the expression needs to the loop."""
        items = [f"{field.key!r}: {self._value(field, selection, loop)}" for field in selection.fields]
        return f"{{{', '.join(items)}}}"

    def _value(self, field: Field, selection: Selection, loop: "_Loop") -> str:
        if field.type is None:
            return repr(selection.type)
        if field.place is None and field.selection is not None:  # the source itself
            return self._object(field.selection, loop)
        if isinstance(field.resolver, Attribute) and field.resolver.trusted and field.selection is None:
            return self._expression(field)
        value = self._new()
        if field.place is None:
            loop.lines.append(f"{value} = {self._expression(field)}")
        else:
            loop.names.append(value)
            loop.lists.append(
                self._objects(field, field.selection) if field.selection else f"_columns[{field.place}]"
            )
        if field.selection is None:
            loop.lines.append(self._checked(field, value))
        return value

    def _objects(self, field: Field, selection: Selection) -> str:
        """Writes the list of a field's values, one for each object of its level; returns its name."""
        made = self._selection(selection, f"_sources[{field.place}]")
        column, result = f"_columns[{field.place}]", self._new()
        if field.is_list:
            write = self._lists_with_nulls if field.items_nullable else self._lists
            self._lines += [f"    {line}" for line in write(field, made, column, result)]
            return result
        if field.nullable:
            self._lines += [
                f"    {result} = {made}",
                f"    if len({made}) != len({column}):",
                f"        {result}_next = iter({made}).__next__",
                f"        {result} = [None if _each is None else {result}_next() for _each in {column}]",
            ]
            return result
        return made

    def _lists(self, field: Field, made: str, column: str, result: str) -> list[str]:
        """Lines that cut the objects made for a column into its lists."""
        lines = [
            "_end = _start + len(_items)",
            f"{result}_add({made}[_start:_end])",
            "_start = _end",
        ]
        if field.nullable:
            lines = [f"if _items is None: {result}_add(None)", "else:", *[f"    {line}" for line in lines]]
        return [
            f"{result}, _start = [], 0",
            f"{result}_add = {result}.append",
            f"for _items in {column}:",
            *[f"    {line}" for line in lines],
        ]

    def _lists_with_nulls(self, field: Field, made: str, column: str, result: str) -> list[str]:
        items = f"[None if _each is None else {result}_next() for _each in _items]"
        if field.nullable:
            items = f"None if _items is None else {items}"
        return [f"{result}_next = iter({made}).__next__", f"{result} = [{items} for _items in {column}]"]

    def _expression(self, field: Field) -> str:
        attribute = cast("Attribute", field.resolver)
        for name, value in attribute.known.items():
            if self._names.setdefault(name, value) is not value:  # the name is taken
                return f"{self._known(attribute.read)}(p)"
        return attribute.expression

    def _checked(self, field: Field, value: str) -> str:
        """A line that checks or serializes a leaf."""
        when, what = self._needed(field, bare(field.type), value)
        if field.nullable:
            when = f"{value} is not None and {when}" if when else f"{value} is not None"
        return f"if {when}: {what}" if when else what

    def _needed(self, field: Field, kind: Any, value: str) -> tuple[str, str]:
        """The condition on which a leaf that is not null needs something done, and what."""
        if kind in _IS_WRONG:
            return _IS_WRONG[kind].format(value), "_give_up()"
        if isinstance(kind, GraphQLEnumType):
            names = {name for name, each in kind.values.items() if each.value in (None, name)}
            if names:  # those of introspection have values other than their names
                return f"{value} not in {self._known(names)}", "_give_up()"
        if isinstance(kind, GraphQLList):
            serialize = _list_serializer(bare(kind.of_type), nullable=field.items_nullable)
            return "", f"{value} = {self._known(serialize)}({value})"
        is_default = kind.coerce_output_value is GraphQLScalarType.serialize
        return (
            f"{value}.__class__ is not str" if is_default else "",
            f"{value} = {self._known(_serializer(kind))}({value})",
        )

    def _known(self, value: Any) -> str:
        """A new name for a value that the function uses."""
        name = self._new()
        self._names[name] = value
        return name

    def _new(self) -> str:
        self._made += 1
        return f"_{self._made}"


class _Loop:
    """The loop that makes a level's objects: what it runs over, and its lines before it makes each."""

    def __init__(self, sources: str) -> None:
        self.names = ["p"]
        self.lists = [sources]
        self.lines: list[str] = []

    @property
    def over(self) -> str:
        lists = self.lists[0] if len(self.lists) == 1 else f"zip({', '.join(self.lists)})"
        return f"for {', '.join(self.names)} in {lists}"


def _give_up() -> None:
    raise NeedsCompletion


def _serializer(kind: GraphQLScalarType | GraphQLEnumType) -> Callable[[Any], Any]:
    """Serializes a leaf that is not null."""

    def serialize(value: Any) -> Any:
        if isinstance(value, Exception):
            raise NeedsCompletion
        return serialized(kind, value)

    return serialize


def _list_serializer(kind: Any, *, nullable: bool) -> Callable[[Any], list[Any]]:
    """Serializes a list of leaves."""
    serialize = _serializer(kind)

    def serialize_all(value: Any) -> list[Any]:
        if value.__class__ is not list and value.__class__ is not tuple:
            raise NeedsCompletion
        return [None if item is None and nullable else serialize(item) for item in value]

    return serialize_all
