"""Execution by graphql-core: of what plans do not cover, and of everything where the compiled form is off.

The resolvers are the same. graphql-core asks for one object at a time; those that it asks for in one turn of
the loop are gathered here and resolved together, so a level still takes one statement.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import CoroutineType
from typing import Any

from graphql import (
    FieldNode,
    GraphQLError,
    GraphQLField,
    GraphQLObjectType,
    GraphQLResolveInfo,
    GraphQLSchema,
    execute,
)
from graphql.language import DocumentNode

from tradepost.graphql.complete import Tell
from tradepost.graphql.execute import Calls, column_of, failed, together
from tradepost.graphql.field import Args, Attribute, Bindings, Resolver

Change = Callable[[str, Args], Awaitable[Any]]
Info = GraphQLResolveInfo[Any]


@dataclass
class _Batch:
    """The objects that one field is asked for in one turn of the loop."""

    behind: Resolver
    args: Args
    sources: list[Any] = field(default_factory=list)
    answers: list[asyncio.Future[Any]] = field(default_factory=list)

    def answer(self, column: list[Any]) -> None:
        """Tells everyone their value. An exception is one, which graphql-core raises at its place."""
        for future, value in zip(self.answers, column, strict=True):
            if not future.done():
                future.set_result(value)


@dataclass
class _Run:
    """One execution. `change` makes the change of a field of Mutation; `given` is what a root resolves to."""

    context: Any
    change: Change | None
    given: Any
    _batches: dict[Any, _Batch] = field(default_factory=dict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _answers: list[asyncio.Future[Any]] = field(default_factory=list)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # they share their loads

    def ask(self, behind: Resolver, source: Any, info: Info, args: Args) -> asyncio.Future[Any]:
        """The value of a field for one source, in a while."""
        loop = asyncio.get_running_loop()
        if not self._batches:
            loop.call_soon(self._begin)
        # A field is where it stands in the answer, whatever the positions in lists on the way.
        place = (info.parent_type.name, *[key for key in info.path.as_list() if key.__class__ is str])
        batch = self._batches.get(place)
        if batch is None:
            batch = self._batches[place] = _Batch(behind, args)
        answer = loop.create_future()
        batch.sources.append(source)
        batch.answers.append(answer)
        self._answers.append(answer)
        return answer

    async def stop(self) -> None:
        """Ends what is still under way, and lets go whoever waits for an answer: nobody needs it any more."""
        self._batches = {}
        for each in (*self._tasks, *self._answers):
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self) -> None:
        batches, self._batches = list(self._batches.values()), {}
        if batches:
            self._tasks.append(asyncio.get_running_loop().create_task(self._in_turn(batches)))

    async def _in_turn(self, batches: list[_Batch]) -> None:
        async with self._turn:
            await self._resolve(batches)

    async def _resolve(self, batches: list[_Batch]) -> None:
        waiting, calls = list[_Batch](), Calls()
        for batch in batches:
            count = len(batch.sources)
            try:
                found: Any = batch.behind.resolve(batch.sources, batch.args, self.context)
            except Exception as failure:  # noqa: BLE001 (told in the answer, at its place)
                batch.answer(failed(failure, count))
                continue
            if isinstance(found, CoroutineType):
                waiting.append(batch)
                calls.append((found, count))
            else:
                batch.answer(column_of(found, count))
        for batch, column in zip(waiting, await together(calls, self.context), strict=True):
            batch.answer(column)


class Interpreter:
    """Executes documents with graphql-core. Sets the resolvers of the schema it is given."""

    def __init__(self, schema: GraphQLSchema, bindings: Bindings) -> None:
        self._schema = schema
        for (kind, name), behind in bindings.items():
            _field(schema, kind, name).resolve = _resolver(behind)
        for root, resolve in ((schema.mutation_type, _change), (schema.subscription_type, _given)):
            for each in root.fields.values() if root else ():
                each.resolve = each.resolve or resolve

    async def run(
        self,
        document: DocumentNode,
        name: str | None,
        variables: Mapping[str, Any],
        context: Any,
        tell: Tell,
        *,
        change: Change | None = None,
        given: Any = None,
    ) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        """The data and the errors of an operation."""
        run = _Run(context, change, given)
        try:
            found: Any = execute(
                self._schema,
                document,
                context_value=run,
                variable_values=dict(variables),
                operation_name=name,
            )
            result = await found if inspect.isawaitable(found) else found
        finally:
            await run.stop()
        return result.data, [_told(error, tell) for error in result.errors or ()]


def _told(error: GraphQLError, tell: Tell) -> dict[str, Any]:
    """An error as the client is told of it: by what a resolver raised, if it was one."""
    failure = error if error.path is None else error.original_error or error
    nodes = [node for node in error.nodes or () if isinstance(node, FieldNode)]
    return tell(failure, nodes, list(error.path or ()))


def _field(schema: GraphQLSchema, kind: str, name: str) -> GraphQLField:
    found = schema.type_map[kind]
    if not isinstance(found, GraphQLObjectType):
        raise TypeError(kind)
    named: GraphQLField = found.fields[name]
    return named


def _resolver(behind: Attribute | Resolver) -> Callable[..., Any]:
    if isinstance(behind, Attribute):
        read = behind.of
        return lambda source, _, **__: read(source)

    def resolve(source: Any, info: Info, /, **args: Any) -> Any:
        run: _Run = info.context
        return run.ask(behind, source, info, args)

    return resolve


async def _change(source: Any, info: Info, /, **args: Any) -> Any:
    del source
    run: _Run = info.context
    if run.change is None:
        raise AssertionError(info.field_name)
    return await run.change(info.field_name, args)


def _given(source: Any, info: Info, /, **args: Any) -> Any:
    del source, args
    run: _Run = info.context
    return run.given
