"""The GraphQL surface: what a request goes through, whatever it came by.

    asked → document → operation → limits → variables → rate → execution → answer

All that can be refused is refused before anything runs (`Refused`). HTTP (`endpoint.py`) and sockets
(`socket.py`) translate to this and from it.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from graphql import FieldNode, GraphQLError

from tradepost.access.caller import Caller
from tradepost.access.idempotency import Answer, Once
from tradepost.actions.change import Change
from tradepost.graphql.asked import Asked
from tradepost.graphql.binding import Bound
from tradepost.graphql.complete import Path
from tradepost.graphql.context import Context
from tradepost.graphql.deadline import within
from tradepost.graphql.documents import Document
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
from tradepost.graphql.mutations import Act
from tradepost.graphql.operation import Operation, PlanVariant, Result
from tradepost.graphql.order_status import OrderStatus
from tradepost.graphql.persisted import PersistedQueries
from tradepost.graphql.shared import Shared
from tradepost.graphql.variables import BadVariables, Variables
from tradepost.http.answers import encode
from tradepost.perform import Performed, Performer
from tradepost.problems import Problem
from tradepost.storage.database import Row, Writing

_log = logging.getLogger("tradepost.graphql")

_NO_VARIABLES: dict[str, Any] = {}
_POINTS_A_REQUEST = 100  # of complexity, that cost as much as a request


@dataclass(slots=True)
class Prepared:
    """An operation that may run, with its variables and its complexity."""

    operation: Operation
    variants: list[PlanVariant]
    variables: Variables
    given: dict[str, Any]
    complexity: int

    @property
    def cost(self) -> float:
        """What it draws from the rate limit."""
        return 1 + self.complexity / _POINTS_A_REQUEST


@dataclass(slots=True)
class Session:
    """On whose behalf an operation runs, and what it took. `once` makes the key of a root field."""

    caller: Caller
    request_id: str
    source: str = ""  # of the events it causes: the address of the service
    traceparent: str | None = None
    once: Callable[[int], Once] | None = None
    statements: int = 0
    nanoseconds: int = 0
    replayed: bool | None = None  # whether every change so far was made before; None as long as there is none

    def spent(self, statements: int, nanoseconds: int) -> None:
        """Notes what the database took."""
        self.statements += statements
        self.nanoseconds += nanoseconds

    def tell(self, failure: Exception, nodes: list[FieldNode], path: Path) -> Error:
        """A failure as the client is told of it; of what is no problem, that it was logged and no more."""
        if isinstance(failure, GraphQLError) and failure.message.startswith("Argument "):
            return argument_error(failure, path, nodes)
        if isinstance(failure, Problem):
            return problem_error(failure, path, nodes, request_id=self.request_id)
        extra = {"request_id": self.request_id, "path": ".".join(map(str, path))}
        _log.error("a field failed unexpectedly", exc_info=failure, extra=extra)
        return unexpected(self.request_id, path, nodes)


class _Undone(Exception):
    """A change whose answer has errors, under an idempotency key: it is rolled back."""

    def __init__(self, errors: list[Error]) -> None:
        super().__init__()
        self.errors = errors


class GraphQL:
    """Prepares and runs operations. With `gated`, introspection needs its scope."""

    def __init__(
        self,
        bound: Bound,
        persisted: PersistedQueries,
        performer: Performer,
        order_status: OrderStatus,
        *,
        timeout: float,
        gated: bool,
    ) -> None:
        self.bound = bound
        self.performer = performer
        self._persisted = persisted
        self._order_status = order_status
        self._shared: Shared[bytes | None] = Shared()
        self._timeout = timeout
        self._gated = gated
        for document in persisted.listed():
            for operation in document.operations():
                operation.compile()

    async def prepare(self, asked: Asked, caller: Caller) -> Prepared:
        """What is asked, ready to run; raises `Refused`."""
        try:
            found = self._persisted.document(asked)
            document = found if isinstance(found, Document) else await found
        except Problem as problem:
            raise refused(problem) from None
        operation = document.operation(asked.operation_name)
        if self._gated and operation.introspects and "introspection" not in caller.scopes:
            message = "Introspection needs the scope introspection"
            raise refusal(FORBIDDEN, message, status=403)
        given = asked.variables or _NO_VARIABLES
        try:
            variables = operation.coercion.coerced(given)
        except BadVariables as bad:
            raise coercion_errors(bad.errors) from None
        complexity = operation.complexity.of(variables.coerced)
        return Prepared(operation, operation.variants(variables), variables, given, complexity)

    async def finish(self) -> None:
        """Waits for what is still being written."""
        await self._persisted.finish()

    async def run(self, prepared: Prepared, session: Session) -> tuple[bytes, bool]:
        """The answer to a query or a mutation as JSON, and whether it is one without errors."""
        runs = self._changes if prepared.operation.kind == "mutation" else self._read
        try:
            data, errors = await within(self._timeout, runs(prepared, session))
        except TimeoutError:
            data, errors = None, [timed_out(self._timeout)]
        return self._answer(prepared, session, data, errors), not errors

    async def pushes(self, prepared: Prepared, session: Session) -> AsyncGenerator[bytes]:
        """The answers of a subscription as they come, as JSON; raises `Refused` if it cannot begin."""
        (variant,) = prepared.variants
        (field,) = variant.plan.selection.fields
        of = (session.caller, prepared.operation, encode(prepared.given))
        try:
            order_id = field.arguments(prepared.variables)["orderId"]
            changes = self._order_status.changes(session.caller, order_id)
            async with aclosing(changes):
                async for event in changes:
                    body = await self._shared.of(
                        (event, *of), lambda: self._push(prepared, session, order_id)
                    )
                    if body is not None:
                        yield body
        except Problem as problem:
            raise refused(problem, session.request_id) from None

    async def _push(self, prepared: Prepared, session: Session, order_id: str) -> bytes | None:
        """What all get who subscribed to the same with one key; None if the order is gone meanwhile."""
        session = replace(session, statements=0)
        reading = self.performer.database.reading()
        row = await self._order_status.row(session.caller, reading, order_id)
        session.spent(reading.statements, reading.nanoseconds)
        if row is None:
            return None
        try:
            data, errors = await within(self._timeout, self._read(prepared, session, row))
        except TimeoutError:
            data, errors = None, [timed_out(self._timeout)]
        return self._answer(prepared, session, data, errors)

    def _answer(
        self, prepared: Prepared, session: Session, data: dict[str, Any] | None, errors: list[Error]
    ) -> bytes:
        cost = {
            "complexity": prepared.complexity,
            "depth": prepared.operation.depth,
            "statements": session.statements,
        }
        if errors:
            return encode({"errors": errors, "data": data, "extensions": {"cost": cost}})
        return encode({"data": data, "extensions": {"cost": cost}})

    async def _read(self, prepared: Prepared, session: Session, given: Row | None = None) -> Result:
        """A query, or with `given` what is selected of one push."""
        return await self._selected(prepared.variants[0], prepared, session, given)

    async def _selected(
        self, variant: PlanVariant, prepared: Prepared, session: Session, given: Row | None
    ) -> Result:
        """What a plan selects, read from the database as it is now."""
        context = Context(session.caller, self.performer.database.reading())
        try:
            column = None if given is None else [given]
            return await variant.run(prepared.variables, context, session.tell, column)
        finally:
            session.spent(context.reading.statements, context.reading.nanoseconds)

    async def _changes(self, prepared: Prepared, session: Session) -> Result:
        """The fields of a mutation, one after another; under a key each happens once."""
        data: dict[str, Any] = {}
        errors: list[Error] = []
        for number, variant in enumerate(prepared.variants):
            found, wrong = await self._change(number, variant, prepared, session)
            errors += wrong
            if found is None:
                session.replayed = False
                return None, errors
            data |= found
        return data, errors

    async def _change(
        self, number: int, variant: PlanVariant, prepared: Prepared, session: Session
    ) -> Result:
        """One field of a mutation: its change, and what is selected of what that made."""
        field = variant.plan.selection.fields[0]
        if field.type is None:
            return {field.key: field.parent}, []
        try:
            args = field.arguments(prepared.variables)
            if session.once is not None:
                return await self._once(variant, args, prepared, session, session.once(number))
            row = await self._performed(field.name, args, session)
        except _Undone as undone:
            return None, undone.errors
        except Exception as failure:  # noqa: BLE001 (told in the answer, at its place)
            return None, [session.tell(failure, field.nodes, [field.key])]
        return await self._selected(variant, prepared, session, row)

    async def _performed(self, name: str, args: Args, session: Session) -> Row:
        """Makes a change; the row of what it changed."""
        act = self.bound.acts[name]
        act.admit(session.caller)
        made: list[Row] = []

        async def action(change: Change) -> Answer:
            made[:] = [await act.act(change, args)]
            return Answer(200, [], b"")

        await self._perform(act, action, session)
        return made[0]

    async def _once(
        self, variant: PlanVariant, args: Args, prepared: Prepared, session: Session, once: Once
    ) -> Result:
        """Makes a change once, and keeps what is answered with it in its transaction."""
        field = variant.plan.selection.fields[0]
        act = self.bound.acts[field.name]
        act.admit(session.caller)

        async def action(change: Change) -> Answer:
            row = await act.act(change, args)
            context = Context(session.caller, change.tx)
            data, errors = await variant.run(prepared.variables, context, session.tell, [row])
            if errors or data is None:
                raise _Undone(errors)
            return Answer(200, [], encode(data[field.key]))

        done = await self._perform(act, action, session, once)
        session.replayed = done.replayed and session.replayed is not False
        return {field.key: msgspec.Raw(done.answer.body)}, []

    async def _perform(
        self,
        act: Act,
        action: Callable[[Change], Awaitable[Answer]],
        session: Session,
        once: Once | None = None,
    ) -> Performed:
        """Runs an action in one transaction, and notes what that took, also of one that fails."""
        begun: list[Writing] = []

        async def noted(change: Change) -> Answer:
            begun[:] = [change.tx]
            return await action(change)

        try:
            done = await self.performer.perform(
                session.caller,
                noted,
                record=act.record,
                once=once,
                traceparent=session.traceparent,
                source=session.source,
            )
        except Exception:
            for tx in begun:
                session.spent(tx.statements, tx.nanoseconds)
            raise
        session.spent(done.statements, done.nanoseconds)
        return done
