"""Introspection (GraphQL specification, 4.2): what stands behind `__schema`, `__type` and all below them.

graphql-core declares these types and has the value of each of their fields for one object. Here they become
attributes and resolvers like any others, so that introspection is planned and executed like any other field.
It never waits for a database; a long level waits for the loop instead, which lets others run and the deadline
of the operation end it.
"""

import asyncio
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from graphql import (
    GraphQLField,
    GraphQLObjectType,
    GraphQLSchema,
    get_named_type,
    get_nullable_type,
    introspection_types,
    is_leaf_type,
    is_list_type,
)
from graphql.type import SchemaMetaFieldDef, TypeMetaFieldDef

from tradepost.graphql.field import Args, Attribute, Resolver

_MANY = 100  # objects of a level, before which the loop has its turn: 0.1 ms of work


def bindings(schema: GraphQLSchema) -> dict[tuple[str, str], Attribute | Resolver]:
    """What stands behind each field of introspection."""
    return dict(_bindings(schema, SimpleNamespace(schema=schema)))


def _bindings(schema: GraphQLSchema, info: Any) -> Iterator[tuple[tuple[str, str], Attribute | Resolver]]:
    query = str(schema.query_type)
    yield (query, "__schema"), _resolver(SchemaMetaFieldDef, info)
    yield (query, "__type"), _resolver(TypeMetaFieldDef, info)
    for kind in introspection_types.values():
        if isinstance(kind, GraphQLObjectType):
            for name, field in kind.fields.items():
                is_leaf = is_leaf_type(get_named_type(field.type))
                found = _attribute(f"{kind}_{name}", field, info) if is_leaf else _resolver(field, info)
                yield (kind.name, name), found


def _attribute(name: str, field: GraphQLField, info: Any) -> Attribute:
    known = name.strip("_")
    return Attribute(f"{known}(p, info)", {known: field.resolve, "info": info})


def _resolver(field: GraphQLField, info: Any) -> Resolver:
    """A field whose values are objects. graphql-core looks up nothing in `info` but the schema."""
    value: Any = field.resolve
    is_list = is_list_type(get_nullable_type(field.type))

    async def resolve(sources: Sequence[Any], args: Args, context: Any) -> list[Any]:
        del context
        if len(sources) >= _MANY:
            await asyncio.sleep(0)
        values = [value(source, info, **args) for source in sources]
        return [None if each is None else tuple(each) for each in values] if is_list else values

    return Resolver(resolve)
