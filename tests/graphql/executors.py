"""One operation executed in four ways: compiled, completed, by the Interpreter, and by graphql-core alone.

The last is the oracle: graphql-core's own executor, which asks our resolvers for one object at a time and
knows nothing of levels, loads, or plans.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from graphql import (
    Executor,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    execute,
    parse,
)

from tests.graphql.world import Context, World, bindings, new_schema, types
from tradepost.graphql.complete import Completion
from tradepost.graphql.field import Args, Attribute, Bindings, Resolver
from tradepost.graphql.form import Form, Variant
from tradepost.graphql.interpreted import Interpreter
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

    def __post_init__(self) -> None:
        self.document = parse(self.text)

    @property
    def operation(self) -> OperationDefinitionNode:
        found = self.document.definitions[0]
        assert isinstance(found, OperationDefinitionNode)
        return found

    def world(self) -> World:
        return World(self.seed, self.faults)


class Bound:
    """The schema of the world, bound as `graphql.binding` does it."""

    def __init__(self) -> None:
        self.schema: GraphQLSchema = new_schema()
        self.bindings: Bindings = bindings()


class Executors:
    """All four."""

    def __init__(self) -> None:
        self.bound = Bound()
        self._interpreter = Interpreter(self.bound.schema, self.bound.bindings)
        self._oracle = new_schema()
        for kind, name in types():
            found = vars(self._oracle.type_map[kind])["fields"][name]
            found.resolve = _alone(self.bound.bindings.get((kind, name)))

    async def path(self, asked: Asked) -> str:
        """What answers it when it was asked before."""
        with patch("tradepost.graphql.form.Completion", wraps=Completion) as completion:
            answer = await self.planned(asked, compiled=True)
        if answer is None:
            return "interpreted"
        return "completed" if completion.called else "compiled"

    async def planned(self, asked: Asked, *, compiled: bool) -> Answer | None:
        """By plans, compiled at once or never; None if they do not cover the operation."""
        form = Form(self.bound, asked.document, asked.operation, quiet=False)
        try:
            variables = form.coercion.coerced(asked.given)
        except BadVariables as bad:
            return Answer(None, [_told(error, [], []) for error in bad.errors], [])
        variants = form.variants(variables)
        if variants is None:
            return None
        world, data, errors = asked.world(), dict[str, Any](), list[Told]()
        for variant in variants:
            if compiled:
                variant.compile()
            else:
                variant = Variant(variant.plan)  # noqa: PLW2901 (one that is used for the first time)
            given = None
            if asked.operation.operation is OperationType.MUTATION:
                given = _changed(world, variant, variables)
            found, wrong = await variant.run(variables, Context(world), _tell, given)
            errors += wrong  # type: ignore[arg-type]
            if found is None:
                return Answer(None, errors, world.changes)
            data |= found
        return Answer(data, errors, world.changes)

    async def interpreted(self, asked: Asked) -> Answer:
        """By the Interpreter."""
        world = asked.world()
        context = Context(world)

        async def change(name: str, args: Args) -> Any:
            context.loads = type(context.loads)()
            return world.change(name, args)

        data, errors = await self._interpreter.run(
            asked.document, None, asked.given, context, _tell, change=change
        )
        return Answer(data, errors, world.changes)  # type: ignore[arg-type]

    async def alone(self, asked: Asked, *, propagating: bool = True) -> Answer:
        """By the oracle; not `propagating`, it tells whatever can go wrong anywhere."""
        world = asked.world()
        found: Any = execute(
            self._oracle,
            asked.document,
            context_value=Context(world, _Alone()),
            variable_values=dict(asked.given),
            executor_class=Executor if propagating else _Exhaustive,
        )
        result = await found if inspect.isawaitable(found) else found
        errors = [_told(error, error.nodes or (), error.path or ()) for error in result.errors or ()]
        return Answer(result.data, errors, world.changes)


class _Exhaustive(Executor[Any]):
    """Leaves null where it may not be, and goes on: so every error is told."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.error_propagation = False


class _Alone:
    """Loads for each who asks, at once."""

    async def load(self, loader: Any, keys: Sequence[Any]) -> list[Any]:
        found = await loader.fetch(None, list(keys))
        return [found.get(key, loader.missing) for key in keys]


def _alone(behind: Attribute | Resolver | None) -> Callable[..., Any]:
    """A resolver of graphql-core that asks ours for one object."""
    if behind is None:
        return lambda _, info, **args: info.context.world.change(info.field_name, args)
    if isinstance(behind, Attribute):
        if behind.expression == "p":
            return lambda source, _: source
        return lambda source, info: getattr(source, info.field_name)

    def resolve(source: Any, info: Any, **args: Any) -> Any:
        column: Any = behind.resolve([source], args, info.context)
        return _first(column) if inspect.iscoroutine(column) else column[0]

    return resolve


async def _first(column: Any) -> Any:
    return (await column)[0]


def _changed(world: World, variant: Variant, variables: Variables) -> list[Any] | None:
    """What a field of Mutation gives, as the column of its one source."""
    field = variant.plan.selection.fields[0]
    if field.type is None:
        return None
    try:
        return [world.change(field.name, field.arguments(variables))]
    except Exception as failure:  # noqa: BLE001 (told in the answer)
        return [failure]


def _tell(failure: Exception, nodes: Sequence[Any], path: Sequence[str | int]) -> Any:
    return _told(failure, nodes, path)


def _told(failure: Exception, nodes: Sequence[Any], path: Sequence[str | int]) -> Told:
    message = str(failure)
    if isinstance(failure, GraphQLError):
        message, nodes = failure.message, failure.nodes or nodes
    return Told(tuple(path), message, tuple(node.loc.start for node in nodes if node.loc))
