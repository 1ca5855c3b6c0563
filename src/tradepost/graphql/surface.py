"""The GraphQL surface: the way of a request from HTTP or a socket to its answer.

    request → document → operation → variables → complexity → plan → rate → execution → answer

A request error (`Refused`) is raised before anything runs. HTTP (`endpoint.py`) and sockets (`socket.py`)
translate requests to this and answers from it.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec
from graphql import FieldNode, GraphQLError

from tradepost.access.caller import Caller
from tradepost.access.idempotency import IdempotentRequest
from tradepost.actions.change import Change
from tradepost.graphql.complete import Path
from tradepost.graphql.context import Context
from tradepost.graphql.deadline import within
from tradepost.graphql.documents import ValidDocument
from tradepost.graphql.errors import (
    FORBIDDEN,
    Error,
    argument_error,
    coercion_errors,
    problem_error,
    refusal,
    refused,
    timed_out,
    unexpected,
)
from tradepost.graphql.field import Args
from tradepost.graphql.mutations import Mutation
from tradepost.graphql.operation import ExecutableOperation, PlanVariant, Result
from tradepost.graphql.order_status import OrderStatus
from tradepost.graphql.persisted import PersistedQueries
from tradepost.graphql.request import GraphQLRequest
from tradepost.graphql.schema import BoundSchema
from tradepost.graphql.single_flight import SingleFlight
from tradepost.graphql.variables import BadVariables, Variables
from tradepost.http.answers import encode
from tradepost.http.request import DatabaseUse
from tradepost.perform import Performed, Performer
from tradepost.problems import Problem
from tradepost.storage.database import Row

T = TypeVar("T")

_log = logging.getLogger("tradepost.graphql")

_NO_VARIABLES: dict[str, Any] = {}
_POINTS_PER_REQUEST = 100  # of complexity: they cost as much as a request


@dataclass(slots=True)
class Prepared:
    """An operation that may run, with its plans, its variables as coerced and as sent, and its points."""

    operation: ExecutableOperation
    variants: list[PlanVariant]
    variables: Variables
    raw_variables: dict[str, Any]
    complexity: int

    @property
    def cost(self) -> float:
        """The requests that it draws from the rate limit."""
        return 1 + self.complexity / _POINTS_PER_REQUEST


@dataclass(slots=True)
class Session:
    """For whom an operation runs, and what it took. `once` makes the idempotent request of a root field."""

    caller: Caller
    request_id: str
    source: str = ""  # of the events that it causes: the address of the service
    traceparent: str | None = None
    once: Callable[[int], IdempotentRequest[bytes]] | None = None
    use: DatabaseUse = field(default_factory=DatabaseUse)
    replayed: bool | None = None  # whether all changes so far had been made before; None: no changes

    def to_error(self, failure: Exception, nodes: list[FieldNode], path: Path) -> Error:
        """A failure as an error of the answer; one that is not a problem is logged under the request's id."""
        if isinstance(failure, GraphQLError) and failure.message.startswith("Argument "):
            return argument_error(failure, path, nodes)
        if isinstance(failure, Problem):
            return problem_error(failure, path, nodes, request_id=self.request_id)
        extra = {"request_id": self.request_id, "path": ".".join(map(str, path))}
        _log.error("a field failed unexpectedly", exc_info=failure, extra=extra)
        return unexpected(self.request_id, path, nodes)


class _RolledBack(Exception):
    """A change under an idempotency key whose answer has errors: its transaction is rolled back."""

    def __init__(self, errors: list[Error]) -> None:
        super().__init__()
        self.errors = errors


class GraphQL:
    """Prepares and runs operations. With `gated`, introspection needs the scope introspection."""

    def __init__(
        self,
        bound: BoundSchema,
        persisted: PersistedQueries,
        performer: Performer,
        order_status: OrderStatus,
        *,
        timeout_seconds: float,
        gated: bool,
    ) -> None:
        self.bound = bound
        self.performer = performer
        self._persisted = persisted
        self._order_status = order_status
        self._pushes: SingleFlight[bytes | None] = SingleFlight()
        self._timeout_seconds = timeout_seconds
        self._gated = gated
        for document in persisted.listed():
            for operation in document.operations():
                operation.compile()

    async def prepare(self, request: GraphQLRequest, caller: Caller) -> Prepared:
        """The operation of a request, ready to run.

        Raises `Refused` for a document, an operation name or variables that cannot be used, for a limit that
        is exceeded, and for introspection without its scope where that is needed.
        """
        try:
            known = self._persisted.document(request)
            document = known if isinstance(known, ValidDocument) else await known
        except Problem as problem:
            raise refused(problem) from None
        operation = document.operation(request.operation_name)
        if self._gated and operation.introspects and "introspection" not in caller.scopes:
            message = "Introspection needs the scope introspection"
            raise refusal(FORBIDDEN, message, status=403)
        raw_variables = request.variables or _NO_VARIABLES
        try:
            variables = operation.coercion.coerced(raw_variables)
        except BadVariables as bad:
            raise coercion_errors(bad.errors) from None
        complexity = operation.complexity.of(variables.coerced)
        variants = operation.variants(variables)
        return Prepared(operation, variants, variables, raw_variables, complexity)

    async def finish(self) -> None:
        """Waits until all uses of persisted queries are written down."""
        await self._persisted.finish()

    async def run(self, prepared: Prepared, session: Session) -> tuple[bytes, bool]:
        """The answer to a query or a mutation as JSON, and whether it has no errors.

        Failures of fields, such as a scope that the caller lacks, are errors of the answer.
        """
        if prepared.operation.kind == "mutation":
            work = self._changes(prepared, session)
        else:
            work = self._selected(prepared.variants[0], prepared, session)
        return await self._answered(prepared, session, work)

    async def pushes(self, prepared: Prepared, session: Session) -> AsyncGenerator[bytes]:
        """The answers of a subscription as JSON, one for each change.

        Raises `Refused` before the first if the caller may not read the order, or there is none.
        """
        (variant,) = prepared.variants
        (field,) = variant.plan.selection.fields
        same = (session.caller, prepared.operation, encode(prepared.raw_variables))
        try:
            order_id = field.arguments(prepared.variables)["orderId"]
            changes = self._order_status.changes(session.caller, order_id)
            async with aclosing(changes):
                async for event in changes:
                    body = await self._pushes.of(
                        (event, *same), lambda: self._push(prepared, session, order_id)
                    )
                    if body is not None:
                        yield body
        except Problem as problem:
            raise refused(problem, session.request_id) from None

    async def _push(self, prepared: Prepared, session: Session, order_id: str) -> bytes | None:
        """The answer that all get who selected the same with one key; None if the order has been deleted."""
        session = replace(session, use=DatabaseUse())
        reading = self.performer.database.reading()
        row = await self._order_status.row(session.caller, reading, order_id)
        session.use.add(reading)
        if row is None:
            return None
        body, _ = await self._answered(
            prepared, session, self._selected(prepared.variants[0], prepared, session, row)
        )
        return body

    async def _answered(
        self, prepared: Prepared, session: Session, work: Coroutine[Any, Any, Result]
    ) -> tuple[bytes, bool]:
        """The answer of an execution within the time that it may take, and whether it has no errors."""
        try:
            data, errors = await within(self._timeout_seconds, work)
        except TimeoutError:
            data, errors = None, [timed_out(self._timeout_seconds)]
        cost = {
            "complexity": prepared.complexity,
            "depth": prepared.operation.depth,
            "statements": session.use.statements,
        }
        if errors:
            return encode({"errors": errors, "data": data, "extensions": {"cost": cost}}), False
        return encode({"data": data, "extensions": {"cost": cost}}), True

    async def _selected(
        self, variant: PlanVariant, prepared: Prepared, session: Session, root_value: Row | None = None
    ) -> Result:
        """What a plan selects from the database now, or of `root_value`, the row of a change or a push."""
        context = Context(session.caller, self.performer.database.reading())
        try:
            return await variant.run(prepared.variables, context, session.to_error, root_value)
        finally:
            session.use.add(context.reading)

    async def _changes(self, prepared: Prepared, session: Session) -> Result:
        """The fields of a mutation, one after another until one fails; under a key each runs once."""
        data: dict[str, Any] = {}
        errors: list[Error] = []
        for number, variant in enumerate(prepared.variants):
            changed, failures = await self._change(number, variant, prepared, session)
            errors += failures
            if changed is None:
                session.replayed = False
                return None, errors
            data |= changed
        return data, errors

    async def _change(
        self, number: int, variant: PlanVariant, prepared: Prepared, session: Session
    ) -> Result:
        """One field of a mutation: its change, and what is selected of the changed row."""
        field = variant.plan.selection.fields[0]
        if field.type is None:
            return {field.key: field.parent}, []
        try:
            args = field.arguments(prepared.variables)
            if session.once is not None:
                return await self._once(variant, args, prepared, session, session.once(number))
            row = await self._performed(field.name, args, session)
        except _RolledBack as rolled_back:
            return None, rolled_back.errors
        except Exception as failure:  # noqa: BLE001 (an error in the answer, at its place)
            return None, [session.to_error(failure, field.nodes, [field.key])]
        return await self._selected(variant, prepared, session, row)

    async def _performed(self, name: str, args: Args, session: Session) -> Row:
        """Makes a change; the changed row."""
        mutation = self.bound.mutations[name]

        async def action(change: Change) -> Row:
            return await mutation.act(change, args)

        return (await self._perform(mutation, action, session)).result

    async def _once(
        self,
        variant: PlanVariant,
        args: Args,
        prepared: Prepared,
        session: Session,
        request: IdempotentRequest[bytes],
    ) -> Result:
        """Makes a change once, and stores its answer in its transaction."""
        field = variant.plan.selection.fields[0]
        mutation = self.bound.mutations[field.name]

        async def action(change: Change) -> bytes:
            row = await mutation.act(change, args)
            context = Context(session.caller, change.tx)
            data, errors = await variant.run(prepared.variables, context, session.to_error, row)
            if errors or data is None:
                raise _RolledBack(errors)
            return encode(data[field.key])

        data, replayed = await self._perform(mutation, action, session, request)
        session.replayed = replayed and session.replayed is not False
        return {field.key: msgspec.Raw(data)}, []

    async def _perform(
        self,
        mutation: Mutation,
        action: Callable[[Change], Awaitable[T]],
        session: Session,
        request: IdempotentRequest[T] | None = None,
    ) -> Performed[T]:
        return await self.performer.perform(
            session.caller,
            mutation.permission,
            action,
            source=session.source,
            request=request,
            traceparent=session.traceparent,
            use=session.use,
        )
