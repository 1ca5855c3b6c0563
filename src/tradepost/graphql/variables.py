"""The variables of one request, coerced to their types (GraphQL specification, 6.1.2).

Scalars of the usual kinds are checked here, which is all that most operations need; the rest is left to
graphql-core.
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
_ERRORS_TOLD = 20


class BadVariables(Exception):
    """Values that are not of their variables' types."""

    def __init__(self, errors: list[GraphQLError]) -> None:
        super().__init__()
        self.errors = errors


class Variables:
    """The values by name in `coerced`; in `all` also where they came from, as the library wants it."""

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
    """How the variables of one operation are coerced."""

    def __init__(self, schema: GraphQLSchema, operation: OperationDefinitionNode, *, quiet: bool) -> None:
        self._schema = schema
        self._definitions = operation.variable_definitions or ()
        self._quiet = quiet  # tells no names of the schema that were not asked for
        self._simple = _simple(operation)

    def coerced(self, given: Mapping[str, Any]) -> Variables:
        """Raises `BadVariables`."""
        if self._simple is not None:
            found = _checked(self._simple, given)
            if found is not None:
                return Variables(found, lambda: self._library(given))
        values = self._library(given)
        return Variables(values.coerced, lambda: values)

    def _library(self, given: Mapping[str, Any]) -> VariableValues:
        values = get_variable_values(
            self._schema, self._definitions, dict(given), _ERRORS_TOLD, hide_suggestions=self._quiet
        )
        if isinstance(values, list):
            raise BadVariables(values)
        return values


def _simple(operation: OperationDefinitionNode) -> list[tuple[str, type, bool]] | None:
    """Each variable's name, class and whether it may be null; None unless all are plain scalars."""
    found = []
    for definition in operation.variable_definitions or ():
        kind = definition.type
        required = isinstance(kind, NonNullTypeNode)
        named = kind.type if isinstance(kind, NonNullTypeNode) else kind
        known = _SIMPLE.get(named.name.value) if isinstance(named, NamedTypeNode) else None
        if known is None or definition.default_value is not None:
            return None
        found.append((definition.variable.name.value, known, not required))
    return found


def _checked(simple: list[tuple[str, type, bool]], given: Mapping[str, Any]) -> dict[str, Any] | None:
    """The values, if each is just what it has to be; None leaves the judgement to the library."""
    found: dict[str, Any] = {}
    for name, known, nullable in simple:
        value = given.get(name, Undefined)
        if value.__class__ is known and (known is not int or value in _INT):
            found[name] = value
        elif value is None and nullable:
            found[name] = None
        elif value is not Undefined or not nullable:
            return None
    return found
