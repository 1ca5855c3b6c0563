"""Introspection (GraphQL specification, section 4.2): resolvers of `__schema`, `__type` and all below them.

graphql-core declares these types, with a function for each field that takes one object. Here the functions
become resolvers like any others, so introspection is planned and executed like any other field. It never
waits for a database; before a long level it gives the event loop a turn, so that others run and the deadline
of the operation holds.
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

from tradepost.graphql.field import Args, Attribute, FieldResolver, LevelResolver

_LONG_LEVEL = 100  # objects, which take about 0.1 ms


def resolvers(schema: GraphQLSchema) -> dict[tuple[str, str], FieldResolver]:
    """The resolvers of introspection by type and field.

    They show the whole schema to every caller; `surface.py` judges who may introspect before anything runs.
    """
    return dict(_resolvers(schema, SimpleNamespace(schema=schema)))


def _resolvers(schema: GraphQLSchema, info: Any) -> Iterator[tuple[tuple[str, str], FieldResolver]]:
    query = str(schema.query_type)
    yield (query, "__schema"), _of_objects(SchemaMetaFieldDef, info)
    yield (query, "__type"), _of_objects(TypeMetaFieldDef, info)
    for kind in introspection_types.values():
        if isinstance(kind, GraphQLObjectType):
            for name, field in kind.fields.items():
                is_leaf = is_leaf_type(get_named_type(field.type))
                yield (
                    (kind.name, name),
                    _of_leaves(f"{kind}_{name}", field, info) if is_leaf else _of_objects(field, info),
                )


def _of_leaves(name: str, field: GraphQLField, info: Any) -> Attribute:
    known = name.strip("_")
    return Attribute(f"{known}(p, info)", {known: field.resolve, "info": info})


def _of_objects(field: GraphQLField, info: Any) -> LevelResolver:
    """A field whose values are objects. Of `info`, graphql-core's functions read the schema alone."""
    value_of: Any = field.resolve
    is_list = is_list_type(get_nullable_type(field.type))

    async def resolve(sources: Sequence[Any], args: Args, context: Any) -> list[Any]:
        del context
        if len(sources) >= _LONG_LEVEL:
            await asyncio.sleep(0)
        values = [value_of(source, info, **args) for source in sources]
        return [None if each is None else tuple(each) for each in values] if is_list else values

    return LevelResolver(resolve)
