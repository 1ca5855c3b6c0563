"""The schema file bound to the records: a resolver for every field of every type.

Members of records, their relations, and the mutations that make and change them are found by their names, as
the records declare them; only fields with rules of their own are named here. A resolver also says how its
field must be declared. A field without a resolver, or with another declaration, stops the start: the schema
file is the contract.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLError,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLObjectType,
    GraphQLSchema,
    Undefined,
    build_schema,
    is_abstract_type,
    validate_schema,
)

from tradepost.domain.input import Input, names_of
from tradepost.domain.money import UNITS
from tradepost.domain.record import Mark, Member, Record, camel, members, parents
from tradepost.graphql import introspection
from tradepost.graphql.field import Attribute, FieldResolver, FieldResolvers, LevelResolver
from tradepost.graphql.mutations import Create, Delete, Mutation, Transition, Update, tag
from tradepost.graphql.products import FILTER, Products
from tradepost.graphql.relations import Children, Connection, ItemById, Parent, RootConnection, total_count
from tradepost.resource import Resource
from tradepost.settings import BadSetting
from tradepost.storage.database import Row
from tradepost.storage.record_statements import statements_of

_HERE = Path(__file__)
# Beside the code in a package, in `contract/` in the repository.
_FILES = (_HERE.with_name("schema.graphql"), _HERE.parents[3] / "contract" / "schema.graphql")
_ID = frozenset([0])  # where a row has its id
_PAGE = "(first: Int, after: String)"
_ITEM = "(id: ID!)"

# By the name of the mutation: the type, the status that it sets, and the arguments.
_TRANSITIONS = {
    "deactivateUser": ("User", "DEACTIVATED", "(id: ID!)"),
    "fulfillOrder": ("Order", "FULFILLED", "(id: ID!, ifMatch: String)"),
    "cancelOrder": ("Order", "CANCELLED", "(id: ID!, ifMatch: String)"),
}
_SUBSCRIPTIONS = {"orderStatusChanged": "(orderId: ID!): Order!"}
_PAGE_INFO = {
    "hasNextPage": ("p.has_next", "Boolean!"),
    "hasPreviousPage": ("p.has_previous", "Boolean!"),
    "startCursor": ("(p.rows[0][0] if p.rows else None)", "String"),
    "endCursor": ("(p.rows[-1][0] if p.rows else None)", "String"),
}


class Drift(BadSetting):
    """The schema file and the code say different things."""

    def __init__(self, place: str, what: str) -> None:
        super().__init__(f"contract/schema.graphql: {place} {what}")


class _Binding(NamedTuple):
    """The resolver of a field, and the field's declaration: its arguments and type."""

    resolver: FieldResolver
    declared: str


def schema_text() -> str:
    """The text of the schema file."""
    return next(path for path in _FILES if path.exists()).read_text("utf-8")


class BoundSchema:
    """A schema with a resolver for each field and a mutation for each field of Mutation.

    Raises `Drift`, which names the place, where the schema and the records say different things.
    """

    def __init__(self, text: str, resources: tuple[Resource, ...]) -> None:
        self.text = text
        self.schema = _schema(text)
        self._resources = {each.record.__name__: each for each in resources}
        self.resolvers: FieldResolvers = dict(self._fields()) | introspection.resolvers(self.schema)
        self.mutations: Mapping[str, Mutation] = dict(self._mutations())
        self._check_subscriptions()
        self._check_enumerations()
        self._check_filter()

    def resource(self, record: type[Record]) -> Resource:
        """The catalogue's entry of a record."""
        return self._resources[record.__name__]

    def _fields(self) -> Iterator[tuple[tuple[str, str], FieldResolver]]:
        changing = (self.schema.mutation_type, self.schema.subscription_type)
        for kind in self.schema.type_map.values():
            if is_abstract_type(kind):
                raise Drift(kind.name, "is an interface or a union, which no record is")
            if (
                isinstance(kind, GraphQLObjectType)
                and not kind.name.startswith("__")
                and kind not in changing
            ):
                for name, field in kind.fields.items():
                    yield (kind.name, name), self._resolver(kind, name, field)

    def _resolver(self, kind: GraphQLObjectType, name: str, field: GraphQLField) -> FieldResolver:
        place, binding = f"{kind.name}.{name}", self._binding(kind, name)
        if binding is None:
            raise Drift(place, "has nothing behind it")
        _check(place, field, binding.declared)
        return binding.resolver

    def _binding(self, kind: GraphQLObjectType, name: str) -> _Binding | None:
        if kind is self.schema.query_type:
            return self._of_query(name)
        if kind.name in self._resources:
            return self._of_record(self._resources[kind.name], name)
        if kind.name == "PageInfo" and name in _PAGE_INFO:
            expression, declared = _PAGE_INFO[name]
            return _Binding(Attribute(expression, trusted=True), f": {declared}")
        if kind.name.endswith("Connection"):
            return _of_connection(kind.name.removesuffix("Connection"), name)
        if kind.name.endswith("Edge"):
            return _of_edge(kind.name.removesuffix("Edge"), name)
        return None

    def _of_query(self, name: str) -> _Binding | None:
        if name == "products":
            declared = "(filter: ProductFilter, first: Int, after: ID): [Product!]!"
            return _Binding(LevelResolver(Products(self._resources["Product"]).resolve), declared)
        for kind, resource in self._resources.items():
            if name == camel(resource.record.kind):
                return _Binding(LevelResolver(ItemById(resource).resolve), f"{_ITEM}: {kind}")
            if name == camel(resource.record.plural):
                return _Binding(LevelResolver(RootConnection(resource).resolve), f"{_PAGE}: {kind}Connection")
        return None

    def _of_record(self, resource: Resource, name: str) -> _Binding | None:
        record = resource.record
        names = statements_of(record).names
        if name == "etag":
            return _Binding(
                Attribute(f"tag(p[{names.index('version')}])", {"tag": tag}, trusted=True), ": String!"
            )
        for each in members(record):
            if each.json_name == name:
                return _Binding(_read(each, names.index(each.name)), f": {_type(record, each)}")
        return self._parent(record, name) or self._children(record, name)

    def _parent(self, record: type[Record], name: str) -> _Binding | None:
        for key, link in parents(record):
            if key.json_name == f"{name}Id":
                at = statements_of(record).names.index(key.name)
                parent = Parent(self._resources[link.parent.__name__], at)
                return _Binding(LevelResolver(parent.resolve, frozenset([at])), f": {link.parent.__name__}")
        return None

    def _children(self, record: type[Record], name: str) -> _Binding | None:
        for kind, below in self._resources.items():
            for key, link in parents(below.record):
                if link.parent is record and camel(link.reverse) == name:
                    if link.embedded:
                        return _Binding(
                            LevelResolver(Children(below, key.name).resolve, _ID), f": [{kind}!]!"
                        )
                    return _Binding(
                        LevelResolver(Connection(below, key.name).resolve, _ID), f"{_PAGE}: {kind}Connection!"
                    )
        return None

    def _mutations(self) -> Iterator[tuple[str, Mutation]]:
        root = self.schema.mutation_type
        for name, field in root.fields.items() if root else ():
            mutation, declared = self._mutation(name)
            _check(f"Mutation.{name}", field, declared)
            yield name, mutation

    def _mutation(self, name: str) -> tuple[Mutation, str]:
        if name in _TRANSITIONS:
            kind, status, arguments = _TRANSITIONS[name]
            return Transition(self._resources[kind], status), f"{arguments}: {kind}!"
        for kind, resource in self._resources.items():
            if name == f"create{kind}" and "POST" in resource.methods:
                self._check_input(f"Create{kind}Input", resource.record, required=True)
                return Create(resource), f"(input: Create{kind}Input!): {kind}!"
            if name == f"update{kind}" and "PATCH" in resource.methods:
                self._check_input(f"Update{kind}Input", resource.record, required=False)
                return Update(resource), f"(id: ID!, input: Update{kind}Input!, ifMatch: String): {kind}!"
            if name == f"delete{kind}" and "DELETE" in resource.methods:
                return Delete(resource), f"(id: ID!, ifMatch: String): {kind}!"
        raise Drift(f"Mutation.{name}", "has nothing behind it")

    def _check_input(self, name: str, record: type[Record], *, required: bool) -> None:
        """An input type has only members that a body takes, and all that are required."""
        expected = {
            each.json_name: _bare(record, each) + ("!" if required and each.required else "")
            for each in Input(record, names_of(record), patching=not required).taken
            if not (each.belongs_to and each.belongs_to.embedded)
        }
        embedded = record.embedded
        if embedded and required:
            child = embedded.child
            expected[camel(embedded.name)] = f"[{child.__name__}Input!]!"
            self._check_input(f"{child.__name__}Input", child, required=True)
        fields = self._input(name)
        for member, declared in expected.items():
            if member not in fields and (declared.endswith("!") or not required):
                raise Drift(name, f"lacks {member}: {declared}")
            if fields.get(member, declared) != declared and not (embedded and member == "status"):
                raise Drift(f"{name}.{member}", f"is {fields[member]}, not {declared}")
        for member in fields.keys() - expected.keys():
            raise Drift(f"{name}.{member}", "is no member that can be given")

    def _check_filter(self) -> None:
        if "Product" in self._resources and self._input("ProductFilter") != FILTER:
            raise Drift("ProductFilter", f"is not {FILTER}")

    def _input(self, name: str) -> dict[str, str]:
        kind = self.schema.type_map.get(name)
        if not isinstance(kind, GraphQLInputObjectType):
            raise Drift(name, "is not declared")
        return {member: _declaration(each) for member, each in kind.fields.items()}

    def _check_subscriptions(self) -> None:
        root = self.schema.subscription_type
        for name, field in root.fields.items() if root else ():
            if name not in _SUBSCRIPTIONS:
                raise Drift(f"Subscription.{name}", "has nothing behind it")
            _check(f"Subscription.{name}", field, _SUBSCRIPTIONS[name])

    def _check_enumerations(self) -> None:
        for kind, resource in self._resources.items():
            for each in members(resource.record):
                enum = self.schema.type_map.get(_bare(resource.record, each)) if each.values else None
                if isinstance(enum, GraphQLEnumType) and set(enum.values) != set(each.values):
                    raise Drift(
                        enum.name, f"is not what {kind}.{each.json_name} can be: {', '.join(each.values)}"
                    )


def _schema(text: str) -> GraphQLSchema:
    try:
        schema = build_schema(text, no_location=True)
    except GraphQLError as error:
        line = f"line {error.locations[0].line}" if error.locations else "the file"
        raise Drift(line, f"cannot be read: {error.message}") from None
    except TypeError as error:
        raise Drift("the file", f"cannot be read: {error}") from None
    errors = validate_schema(schema)
    if errors:
        raise Drift("the file", errors[0].message)
    return schema


def _check(place: str, field: GraphQLField, declared: str) -> None:
    arguments = ", ".join(f"{name}: {_declaration(each)}" for name, each in field.args.items())
    declaration = f"({arguments}): {field.type}" if arguments else f": {field.type}"
    if declaration != declared:
        raise Drift(f"{place}{declaration}", f"must be {place}{declared}")


def _declaration(value: GraphQLArgument | GraphQLInputField) -> str:
    """The declaration of an argument or input field; defaults belong to the code, not to the schema."""
    has_default = value.default is not None or value.default_value is not Undefined
    return f"{value.type} with a default" if has_default else f"{value.type}"


def _type(record: type[Record], each: Member) -> str:
    """The declared type of a member."""
    return _bare(record, each) + ("" if each.nullable else "!")


def _bare(record: type[Record], each: Member) -> str:
    if each.snapshot_of:
        return str(each.snapshot_of.__name__)
    if each.values:
        return f"{record.__name__}{each.name.title().replace('_', '')}"
    if each.name == "id" or each.name.endswith("_id"):
        return "ID"
    if Mark.MONEY in each.marks:
        return "Float"
    if each.is_integer:
        return "Int"
    return "DateTime" if each.is_instant else "String"


def _read(each: Member, at: int) -> Attribute:
    """Reads a member off its row."""
    if Mark.MONEY in each.marks:
        return Attribute(f"p[{at}] / {UNITS}", trusted=True)
    if each.snapshot_of:
        name = f"{each.snapshot_of.kind}_of"
        return Attribute(
            f"(None if p[{at}] is None else {name}(p[{at}]))", {name: _snapshot(each.snapshot_of)}
        )
    return Attribute(f"p[{at}]", trusted=True)


def _snapshot(record: type[Record]) -> Callable[[str], Row]:
    """Returns the row of a record that was stored as JSON, as it was at that moment."""
    names = [each.json_name for each in members(record)]

    def row(stored: str) -> Row:
        values: dict[str, Any] = msgspec.json.decode(stored)
        return (*(values.get(name) for name in names), 0)

    return row


def _of_connection(kind: str, name: str) -> _Binding | None:
    """Relay's connections: https://relay.dev/graphql/connections.htm."""
    match name:
        case "edges":
            return _Binding(Attribute("p.rows"), f": [{kind}Edge!]!")
        case "nodes":
            return _Binding(Attribute("p.rows"), f": [{kind}!]!")
        case "pageInfo":
            return _Binding(Attribute("p"), ": PageInfo!")
        case "totalCount":
            return _Binding(LevelResolver(total_count), ": Int!")
    return None


def _of_edge(kind: str, name: str) -> _Binding | None:
    match name:
        case "cursor":
            return _Binding(Attribute("p[0]", trusted=True), ": String!")
        case "node":
            return _Binding(Attribute("p"), f": {kind}!")
    return None
