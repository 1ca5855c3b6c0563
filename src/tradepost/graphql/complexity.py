"""The complexity of an operation, in points: 1 for each field, times the lengths of the lists above it.

A page has the length of its `first`; any other list of objects counts 10, except the lists in a connection,
which are the page itself. Introspection multiplies nothing. Each fragment is added up once, however often it
is spread, and each request adds up only what depends on its variables.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLField,
    GraphQLSchema,
    InlineFragmentNode,
    IntValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
    get_named_type,
    get_nullable_type,
    is_leaf_type,
    is_list_type,
)

from tradepost.graphql import products, relations
from tradepost.graphql.errors import QUERY_TOO_COMPLEX, refusal

LIST_SIZE = 10
_CONNECTION = "Connection"


Parent = Any  # a type with fields; the document is valid, so there is one


class _PageLength(NamedTuple):
    """The length of a page whose `first` is a variable."""

    variable: str
    default: int
    maximum: int

    def of(self, variables: Mapping[str, Any]) -> int:
        return _page_length(variables.get(self.variable), self.default, self.maximum)


class _Sum:
    """Points that depend on variables: a constant, and other points times a size."""

    def __init__(self, constant: int, terms: list[tuple["int | _PageLength", "_Points"]]) -> None:
        self.constant = constant
        self.terms = terms

    def of(self, variables: Mapping[str, Any], known: dict["_Sum", int]) -> int:
        total = known.get(self)
        if total is None:
            total = self.constant
            for size, points in self.terms:
                times = size if isinstance(size, int) else size.of(variables)
                total += times * (points if isinstance(points, int) else points.of(variables, known))
            known[self] = total
        return total


_Points = int | _Sum


class Complexity:
    """The points of one operation, as far as they do not depend on variables."""

    __slots__ = ("_limit", "_node", "_points")

    def __init__(self, points: _Points, limit: int, node: OperationDefinitionNode) -> None:
        self._points = points
        self._limit = limit
        self._node = node

    def of(self, variables: Mapping[str, Any]) -> int:
        """The points with these coerced variables; raises `Refused` if they exceed the limit."""
        points = self._points
        total = points if isinstance(points, int) else points.of(variables, {})
        if total > self._limit:
            message = f"The operation may cost {total} points; {self._limit} are allowed"
            raise refusal(QUERY_TOO_COMPLEX, message, [self._node], limit=self._limit, found=total)
        return total


class Estimator:
    """Adds up the operations of one valid document with these fragments."""

    def __init__(
        self, schema: GraphQLSchema, fragments: Mapping[str, FragmentDefinitionNode], limit: int
    ) -> None:
        self._schema = schema
        self._limit = limit
        self._fragments = fragments
        self._known: dict[str, _Points] = {}

    def complexity(self, operation: OperationDefinitionNode) -> Complexity:
        """The points of an operation of the document."""
        root = self._schema.get_root_type(operation.operation)
        return Complexity(self._selected(operation.selection_set, root), self._limit, operation)

    def _selected(self, selections: SelectionSetNode, parent: Parent) -> _Points:
        constant = 0
        terms: list[tuple[int | _PageLength, _Points]] = []
        for node in selections.selections:
            size, points = self._term(node, parent)
            constant += isinstance(node, FieldNode)
            if isinstance(size, int) and isinstance(points, int):
                constant += size * points
            else:
                terms.append((size, points))
        return _Sum(constant, terms) if terms else constant

    def _term(self, node: Any, parent: Parent) -> tuple[int | _PageLength, _Points]:
        """How often a selection counts, and the points below it."""
        if isinstance(node, FragmentSpreadNode):
            return 1, self._fragment(node.name.value)
        if isinstance(node, InlineFragmentNode):
            condition = node.type_condition
            inner = self._schema.get_type(condition.name.value) if condition else parent
            return 1, self._selected(node.selection_set, inner)
        if node.selection_set is None:
            return 1, 0
        field: Any = self._schema.get_field(parent, node.name.value)
        return _size(field, node, parent), self._selected(node.selection_set, get_named_type(field.type))

    def _fragment(self, name: str) -> _Points:
        if name not in self._known:
            node = self._fragments[name]
            parent = self._schema.get_type(node.type_condition.name.value)
            self._known[name] = self._selected(node.selection_set, parent)
        return self._known[name]


def _size(field: GraphQLField, node: FieldNode, parent: Parent) -> int | _PageLength:
    """The number of objects that a field may have for each source."""
    kind = get_named_type(field.type)
    if kind.name.startswith("__"):
        return 1
    if "first" in field.args:
        pages = relations if kind.name.endswith(_CONNECTION) else products
        return _page(node, pages.FIRST, pages.MAX_FIRST)
    if parent.name.endswith(_CONNECTION):
        return 1
    many = is_list_type(get_nullable_type(field.type)) and not is_leaf_type(kind)
    return LIST_SIZE if many else 1


def _page(node: FieldNode, default: int, maximum: int) -> int | _PageLength:
    first = next((each.value for each in node.arguments or () if each.name.value == "first"), None)
    if isinstance(first, VariableNode):
        return _PageLength(first.name.value, default, maximum)
    return _page_length(int(first.value) if isinstance(first, IntValueNode) else None, default, maximum)


def _page_length(first: int | None, default: int, maximum: int) -> int:
    """The length of a page. An empty page counts as one item: the fields around it are read all the same."""
    return default if first is None else max(1, min(first, maximum))
