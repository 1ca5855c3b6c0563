"""A plan: a valid operation as a tree of fields, with fragments, aliases and directives resolved.

The tree says which fields there are under which keys, what resolves each, and where its arguments come from.
`@skip` and `@include` are decided in it, so an operation whose directives take variables has a plan for each
set of their values. Every valid operation can be planned: no field of the schema has an interface, a union or
a list of lists as its type (`schema.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from graphql import (
    DirectiveNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLEnumType,
    GraphQLError,
    GraphQLField,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLScalarType,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
    Undefined,
    ValueNode,
    VariableNode,
    get_argument_values,
    get_named_type,
    is_abstract_type,
)
from graphql.language import ast

from tradepost.graphql.errors import BAD_USER_INPUT, refusal
from tradepost.graphql.field import Args, Attribute, FieldResolver, FieldResolvers
from tradepost.graphql.variables import Variables

TYPENAME = "__typename"
_DIRECTIVES = ("skip", "include")


@dataclass(eq=False)
class Field:
    """One response key of a selection.

    `place` is the number of the field among those whose values are fetched level by level. It is None for a
    leaf that is read off its source when the answer is put together, and for an object that is its source.
    """

    key: str
    name: str
    parent: str
    nodes: list[FieldNode]
    type: GraphQLOutputType | None  # None: `__typename`
    resolver: FieldResolver | None  # None: `root_value` of the execution is the value
    arguments: Callable[[Variables], Args]
    selection: "Selection | None" = None
    place: int | None = None

    def __post_init__(self) -> None:
        self.nullable = not isinstance(self.type, GraphQLNonNull)
        kind = bare(self.type)
        self.is_list = isinstance(kind, GraphQLList)
        self.items_nullable = isinstance(kind, GraphQLList) and not isinstance(kind.of_type, GraphQLNonNull)


@dataclass(eq=False, slots=True)
class Selection:
    """The fields selected of an object type; `fetched` are those whose values are fetched.

    These include the fetched fields of an object that is the source itself.
    """

    type: str
    fields: list[Field]
    fetched: list[Field]


@dataclass(eq=False, slots=True)
class Plan:
    """The selection on a root type, with the number of its places and of all its fields.

    `columns` are the positions that it reads in the rows of each type.
    """

    selection: Selection
    places: int
    fields: int
    columns: Mapping[str, frozenset[int]]


class Planner:
    """Plans one operation. `flags` are the values of the variables that its directives take."""

    def __init__(
        self,
        schema: GraphQLSchema,
        resolvers: FieldResolvers,
        fragments: Mapping[str, FragmentDefinitionNode],
        flags: Mapping[str, bool | None],
    ) -> None:
        self._schema = schema
        self._resolvers = resolvers
        self._fragments = fragments
        self._flags = flags
        self._places = 0
        self._fields = 0
        self._columns: dict[str, frozenset[int]] = {}

    def plan(self, operation: OperationDefinitionNode) -> Plan:
        """The plan of a query; raises `Refused` if a directive is given null."""
        selection = self._selection(self._root(operation), [operation.selection_set])
        return Plan(selection, self._places, self._fields, self._columns)

    def plans(self, operation: OperationDefinitionNode) -> list[Plan]:
        """The plans of a mutation or subscription, one for each root field; raises `Refused` like `plan`."""
        plans = []
        root = self._root(operation)
        for key, nodes in self._collected(root, [operation.selection_set]).items():
            self._places = self._fields = 0
            self._columns = {}
            selection = _selection(root.name, [self._field(root, key, nodes)])
            plans.append(Plan(selection, self._places, self._fields, self._columns))
        return plans

    def _root(self, operation: OperationDefinitionNode) -> GraphQLObjectType:
        return cast("GraphQLObjectType", self._schema.get_root_type(operation.operation))

    def _selection(self, kind: GraphQLObjectType, sets: Iterable[SelectionSetNode]) -> Selection:
        self._reads(kind, frozenset())
        collected = self._collected(kind, sets)
        return _selection(kind.name, [self._field(kind, key, nodes) for key, nodes in collected.items()])

    def _reads(self, kind: GraphQLObjectType, positions: frozenset[int]) -> None:
        self._columns[kind.name] = self._columns.get(kind.name, frozenset()) | positions

    def _field(self, parent: GraphQLObjectType, key: str, nodes: list[FieldNode]) -> Field:
        self._fields += 1
        name = nodes[0].name.value
        if name == TYPENAME:
            return Field(key, name, parent.name, nodes, None, None, _no_arguments)
        definition = cast("GraphQLField", self._schema.get_field(parent, name))
        resolver = self._resolvers.get((parent.name, name))
        if resolver is not None:
            self._reads(parent, resolver.positions)
        arguments = _arguments(definition, nodes[0])
        field = Field(key, name, parent.name, nodes, definition.type, resolver, arguments)
        named = get_named_type(definition.type)
        is_leaf = isinstance(named, GraphQLScalarType | GraphQLEnumType)
        if not isinstance(resolver, Attribute) or not (is_leaf or (resolver.is_source and not field.is_list)):
            field.place = self._places
            self._places += 1
        if isinstance(named, GraphQLObjectType):
            sets = [node.selection_set for node in nodes if node.selection_set]
            field.selection = self._selection(named, sets)
        return field

    def _collected(
        self, kind: GraphQLObjectType, sets: Iterable[SelectionSetNode]
    ) -> dict[str, list[FieldNode]]:
        """The fields by their response keys, in the order of the specification (6.3.2)."""
        collected: dict[str, list[FieldNode]] = {}
        seen: set[str] = set()
        for each in sets:
            for node in self._flat(kind, each, seen):
                collected.setdefault((node.alias or node.name).value, []).append(node)
        return collected

    def _flat(
        self, kind: GraphQLObjectType, selected: SelectionSetNode, seen: set[str]
    ) -> Iterator[FieldNode]:
        for node in selected.selections:
            if not self._included(node):
                continue
            if isinstance(node, FieldNode):
                yield node
                continue
            inside = self._fragment(node, seen)
            if inside is not None and self._applies(inside, kind):
                yield from self._flat(kind, inside.selection_set, seen)

    def _fragment(
        self, node: SelectionNode, seen: set[str]
    ) -> FragmentDefinitionNode | InlineFragmentNode | None:
        """The fragment that is spread or inlined; None if this selection has spread it before."""
        if isinstance(node, InlineFragmentNode):
            return node
        name = cast("FragmentSpreadNode", node).name.value
        if name in seen:
            return None
        seen.add(name)
        return self._fragments[name]

    def _applies(
        self, fragment: FragmentDefinitionNode | InlineFragmentNode, kind: GraphQLObjectType
    ) -> bool:
        condition = fragment.type_condition
        if condition is None or condition.name.value == kind.name:
            return True
        wider = self._schema.get_type(condition.name.value)
        return is_abstract_type(wider) and self._schema.is_sub_type(wider, kind)

    def _included(self, node: SelectionNode) -> bool:
        return all(self._flag(each) is (each.name.value == "include") for each in node.directives or ())

    def _flag(self, directive: DirectiveNode) -> bool:
        """The argument of a directive; raises `Refused` for null, which a variable with a default may be."""
        (value,) = [each.value for each in directive.arguments or ()]
        if isinstance(value, ast.BooleanValueNode):
            return value.value
        name = cast("VariableNode", value).name.value
        flag = self._flags[name]
        if flag is None:
            message = f"${name} must not be null where @{directive.name.value} takes it"
            raise refusal(BAD_USER_INPUT, message, [directive])
        return flag


def flags(operation: OperationDefinitionNode, fragments: Mapping[str, FragmentDefinitionNode]) -> list[str]:
    """The variables that the directives of an operation take."""
    names: dict[str, None] = {}
    seen: set[str] = set()
    sets = [operation.selection_set]
    while sets:
        for node in sets.pop().selections:
            names |= dict.fromkeys(_variables_of(node))
            if isinstance(node, FragmentSpreadNode):
                if node.name.value not in seen:
                    seen.add(node.name.value)
                    sets.append(fragments[node.name.value].selection_set)
            elif isinstance(node, FieldNode | InlineFragmentNode) and node.selection_set:
                sets.append(node.selection_set)
    return list(names)


def _variables_of(node: SelectionNode) -> Iterator[str]:
    for directive in node.directives or ():
        for argument in directive.arguments or ():
            if directive.name.value in _DIRECTIVES and isinstance(argument.value, VariableNode):
                yield argument.value.name.value


def bare(kind: GraphQLOutputType | None) -> GraphQLOutputType | None:
    """A type without its `!`."""
    return kind.of_type if isinstance(kind, GraphQLNonNull) else kind


def _selection(kind: str, fields: list[Field]) -> Selection:
    fetched = []
    for field in fields:
        if field.place is not None:
            fetched.append(field)
        elif field.selection is not None:
            fetched += field.selection.fetched
    return Selection(kind, fields, fetched)


def _no_arguments(variables: Variables) -> Args:
    del variables
    return {}


def _arguments(definition: GraphQLField, node: FieldNode) -> Callable[[Variables], Args]:
    """Where the arguments come from: fixed, looked up in the variables, or coerced for each request."""
    if not definition.args:
        return _no_arguments

    def coerced(variables: Variables) -> Args:
        return get_argument_values(definition, node, variables.all)

    values = {each.name.value: each.value for each in node.arguments or ()}
    names = {name: each.name.value for name, each in values.items() if isinstance(each, VariableNode)}
    if any(_has_variables(each) for name, each in values.items() if name not in names):
        return coerced
    others = {name: each for name, each in definition.args.items() if name not in names}
    try:
        fixed = get_argument_values(GraphQLField(definition.type, args=others), node)
    except GraphQLError:
        return coerced  # which raises the error where and when the field is executed
    return _looked_up(definition, fixed, names, coerced) if names else lambda _: fixed


def _looked_up(
    definition: GraphQLField, fixed: Args, names: Mapping[str, str], coerced: Callable[[Variables], Args]
) -> Callable[[Variables], Args]:
    """Arguments of which some are variables and the others `fixed`; `coerced` takes what is not plain."""
    wanted = []
    for name, variable in names.items():
        argument = definition.args[name]
        nullable = not isinstance(argument.type, GraphQLNonNull)
        may_be_omitted = nullable and argument.default is None and argument.default_value is Undefined
        wanted.append((name, variable, nullable, may_be_omitted))

    def looked_up(variables: Variables) -> Args:
        args = dict(fixed)
        for name, variable, nullable, may_be_omitted in wanted:
            value = variables.coerced.get(variable, Undefined)
            if value is Undefined:
                if not may_be_omitted:
                    return coerced(variables)
            elif value is None and not nullable:
                return coerced(variables)
            else:
                args[name] = value
        return args

    return looked_up


def _has_variables(value: ValueNode) -> bool:
    if isinstance(value, ast.ListValueNode):
        return any(map(_has_variables, value.values))
    if isinstance(value, ast.ObjectValueNode):
        return any(_has_variables(each.value) for each in value.fields)
    return isinstance(value, VariableNode)
