"""The oracle: graphql-core's own executor, which asks our resolvers for one object at a time.

It knows nothing of levels, loads, or plans. What introspection says it knows by itself.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from graphql import (
    DocumentNode,
    ExecutionResult,
    Executor,
    FieldNode,
    GraphQLSchema,
    build_schema,
    execute,
    parse,
)

from tests.service import Service
from tradepost.graphql.context import Context
from tradepost.graphql.field import Attribute, LevelResolver
from tradepost.graphql.surface import Session


class Unshared:
    """A context that loads for each who asks, at once."""

    async def load(self, loader: Any, keys: Sequence[Any]) -> list[Any]:
        found = [await loader.fetch(self, [key]) for key in keys]
        return [each.get(key, loader.missing) for each, key in zip(found, keys, strict=True)]


class _Context(Unshared, Context):
    """The context of production, unshared."""


class Exhaustive(Executor[Any]):
    """Leaves null where it may not be, and goes on: so every error is told."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.error_propagation = False


def one_by_one(resolver: Attribute | LevelResolver) -> Callable[..., Any]:
    """A resolver of graphql-core that asks ours for one object."""
    if isinstance(resolver, Attribute):
        read = resolver.read
        return lambda source, _: read(source)

    def resolve(source: Any, info: Any, **args: Any) -> Any:
        column: Any = resolver.resolve([source], args, info.context)
        return _first(column) if inspect.iscoroutine(column) else column[0]

    return resolve


async def _first(column: Any) -> Any:
    return (await column)[0]


@lru_cache(maxsize=16)
def parsed(text: str) -> DocumentNode:
    """A document: parsing takes half of the time, and each is executed in several ways, one after the other."""
    return parse(text)


async def executed(
    schema: GraphQLSchema, text: str, variables: Mapping[str, Any], context: Any, how: type = Executor
) -> ExecutionResult:
    """What graphql-core answers."""
    found: Any = execute(
        schema, parsed(text), context_value=context, variable_values=dict(variables), executor_class=how
    )
    result: ExecutionResult = await found if inspect.isawaitable(found) else found
    return result


def answered(service: Service, text: str, variables: Any, key: str) -> tuple[Any, list[Any]]:
    """The data and the errors of a query, with the resolvers and the database of a service."""
    endpoint = service.app.graphql
    bound = endpoint._graphql.bound
    schema = build_schema(bound.text)
    for (kind, name), resolver in bound.resolvers.items():
        if not name.startswith("__") and not kind.startswith("__"):
            vars(schema.type_map[kind])["fields"][name].resolve = one_by_one(resolver)

    async def work() -> tuple[Any, list[Any]]:
        caller = await endpoint._access_control.caller(f"Bearer {key}".encode())
        context = _Context(caller, endpoint._graphql.performer.database.reading())
        result = await executed(schema, text, variables or {}, context)
        return result.data, [_told(Session(caller, ""), error) for error in result.errors or ()]

    return service.run(work())


def _told(session: Session, error: Any) -> Any:
    nodes = [node for node in error.nodes or () if isinstance(node, FieldNode)]
    return session.to_error(error.original_error or error, nodes, list(error.path or ()))
