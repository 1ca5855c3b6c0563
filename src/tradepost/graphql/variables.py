"""The variables of one request, coerced to their types (GraphQL specification, 6.1.2).

Built-in scalars are checked here, which is all that most operations need; graphql-core coerces the others.
"""

from collections.abc import Callable, Mapping
from typing import Any

from graphql import (
    GraphQLError,
    GraphQLSchema,
    NamedTypeNode,
    NonNullTypeNode,
    OperationDefinitionNode,
    Undefined,
    get_variable_values,
)
from graphql.execution.values import VariableValues

_SIMPLE: Mapping[str, type] = {"ID": str, "String": str, "Int": int, "Boolean": bool}
_INT = range(-(2**31), 2**31)
_MAX_ERRORS = 20


class BadVariables(Exception):
    """Values that do not have the types of their variables."""

    def __init__(self, errors: list[GraphQLError]) -> None:
        super().__init__()
        self.errors = errors


class Variables:
    """The coerced values by name; `all` has them with their sources, as graphql-core takes them."""

    __slots__ = ("_all", "_made", "coerced")

    def __init__(self, coerced: Mapping[str, Any], all_: Callable[[], VariableValues]) -> None:
        self.coerced = coerced
        self._all = all_
        self._made: VariableValues | None = None

    @property
    def all(self) -> VariableValues:
        if self._made is None:
            self._made = self._all()
        return self._made


class Coercion:
    """Coerces the variables of one operation. With `suggestions`, errors name similar fields and values."""

    def __init__(
        self, schema: GraphQLSchema, operation: OperationDefinitionNode, *, suggestions: bool
    ) -> None:
        self._schema = schema
        self._definitions = operation.variable_definitions or ()
        self._suggestions = suggestions
        self._simple = _simple(operation)

    def coerced(self, raw: Mapping[str, Any]) -> Variables:
        """The values of a request's `variables`; raises `BadVariables` with up to 20 errors."""
        if self._simple is not None:
            checked = _checked(self._simple, raw)
            if checked is not None:
                return Variables(checked, lambda: self._by_graphql_core(raw))
        values = self._by_graphql_core(raw)
        return Variables(values.coerced, lambda: values)

    def _by_graphql_core(self, raw: Mapping[str, Any]) -> VariableValues:
        values = get_variable_values(
            self._schema, self._definitions, dict(raw), _MAX_ERRORS, hide_suggestions=not self._suggestions
        )
        if isinstance(values, list):
            raise BadVariables(values)
        return values


def _simple(operation: OperationDefinitionNode) -> list[tuple[str, type, bool]] | None:
    """Each variable's name, class and nullability; None unless all are built-in scalars without defaults."""
    simple = []
    for definition in operation.variable_definitions or ():
        kind = definition.type
        required = isinstance(kind, NonNullTypeNode)
        named = kind.type if isinstance(kind, NonNullTypeNode) else kind
        known = _SIMPLE.get(named.name.value) if isinstance(named, NamedTypeNode) else None
        if known is None or definition.default_value is not None:
            return None
        simple.append((definition.variable.name.value, known, not required))
    return simple


def _checked(simple: list[tuple[str, type, bool]], raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """The values if each has the very class of its variable; None leaves the judgement to graphql-core."""
    checked: dict[str, Any] = {}
    for name, known, nullable in simple:
        value = raw.get(name, Undefined)
        if value.__class__ is known and (known is not int or value in _INT):
            checked[name] = value
        elif value is None and nullable:
            checked[name] = None
        elif value is not Undefined or not nullable:
            return None
    return checked
