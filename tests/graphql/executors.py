"""One operation executed in three ways: compiled, completed, and by the oracle."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from graphql import (
    Executor,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
)

from tests.graphql import oracle
from tests.graphql.world import Context, World, new_schema, resolvers, types
from tradepost.graphql import introspection
from tradepost.graphql.complete import Completion
from tradepost.graphql.complexity import Estimator
from tradepost.graphql.errors import Refused
from tradepost.graphql.field import FieldResolver, FieldResolvers
from tradepost.graphql.limits import OperationSize
from tradepost.graphql.operation import ExecutableOperation, PlanVariant
from tradepost.graphql.variables import BadVariables, Variables

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Told:
    """An error: where, what, and which places of the document it names."""

    path: Path
    message: str
    locations: tuple[Any, ...] = ()


@dataclass
class Answer:
    """What an executor answered, and the changes it made on the way."""

    data: Any
    errors: list[Told]
    changes: list[str]

    @property
    def text(self) -> str:
        """The data with the order of their keys; what JSON has no word for is named by its type."""
        return json.dumps(self.data, default=lambda value: type(value).__name__)


@dataclass
class Asked:
    """An operation and the values of its variables, asked of a world."""

    text: str
    given: Mapping[str, Any]
    seed: int
    faults: float

    def world(self) -> World:
        return World(self.seed, self.faults)


def operation_of(schema: GraphQLSchema, resolvers: FieldResolvers, text: str) -> ExecutableOperation:
    """The first operation of a document that is valid."""
    document = oracle.parsed(text)
    fragments = {
        each.name.value: each for each in document.definitions if isinstance(each, FragmentDefinitionNode)
    }
    node = next(each for each in document.definitions if isinstance(each, OperationDefinitionNode))
    complexity = Estimator(schema, fragments, limit=1000).complexity(node)
    return ExecutableOperation(
        schema, resolvers, fragments, node, OperationSize(1, 0), complexity, suggestions=True
    )


class _Context(oracle.Unshared, Context):
    """The context of the world, unshared."""


class Executors:
    """All three, over the world."""

    def __init__(self) -> None:
        self.schema = new_schema()
        self._resolvers = {**resolvers(), **introspection.resolvers(self.schema)}
        self._oracle = new_schema()
        for kind, name in types():
            found = vars(self._oracle.type_map[kind])["fields"][name]
            found.resolve = _resolve(self._resolvers.get((kind, name)))

    async def path(self, asked: Asked) -> str:
        """What answers it when it was asked before."""
        with patch("tradepost.graphql.operation.Completion", wraps=Completion) as completion:
            await self.planned(asked, compiled=True)
        return "completed" if completion.called else "compiled"

    async def planned(self, asked: Asked, *, compiled: bool) -> Answer | None:
        """By plans, compiled at once or never; None if it is refused."""
        operation = operation_of(self.schema, self._resolvers, asked.text)
        world, data, errors = asked.world(), dict[str, Any](), list[Told]()
        try:
            variables = operation.coercion.coerced(asked.given)
            variants = operation.variants(variables)
        except BadVariables as bad:
            return Answer(None, [_told(error, [], []) for error in bad.errors], [])
        except Refused:
            return None
        for variant in variants:
            fresh = PlanVariant(variant.plan)
            if compiled:
                fresh.compile()
            root_value = _changed(world, variant, variables) if operation.kind == "mutation" else None
            found, wrong = await fresh.run(variables, Context(world), _to_error, root_value)
            errors += wrong  # type: ignore[arg-type]
            if found is None:
                return Answer(None, errors, world.changes)
            data |= found
        return Answer(data, errors, world.changes)

    async def alone(self, asked: Asked, *, propagating: bool = True) -> Answer:
        """By the oracle; not `propagating`, it tells whatever can go wrong anywhere."""
        world = asked.world()
        how = Executor if propagating else oracle.Exhaustive
        context = _Context(world)
        result = await oracle.executed(self._oracle, asked.text, asked.given, context, how)
        errors = [_told(error, error.nodes or (), error.path or ()) for error in result.errors or ()]
        return Answer(result.data, errors, world.changes)


def _resolve(resolver: FieldResolver | None) -> Callable[..., Any]:
    if resolver is None:
        return lambda _, info, **args: info.context.world.change(info.field_name, args)
    return oracle.one_by_one(resolver)


def _changed(world: World, variant: PlanVariant, variables: Variables) -> Any:
    """What a field of Mutation gives, or its failure."""
    field = variant.plan.selection.fields[0]
    if field.type is None:
        return None
    try:
        return world.change(field.name, field.arguments(variables))
    except Exception as failure:  # noqa: BLE001 (told in the answer)
        return failure


def _to_error(failure: Exception, nodes: Sequence[Any], path: Sequence[str | int]) -> Any:
    return _told(failure, nodes, path)


def _told(failure: Exception, nodes: Sequence[Any], path: Sequence[str | int]) -> Told:
    message = str(failure)
    if isinstance(failure, GraphQLError):
        message, nodes = failure.message, failure.nodes or nodes
    return Told(tuple(path), message, tuple(node.loc.start for node in nodes if node.loc))
