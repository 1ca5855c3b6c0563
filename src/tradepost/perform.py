"""The waist of the house: one call, one transaction.

    caller → permission → transaction ( idempotency row → action → event rows → stored result ) → commit

Every surface translates its calls to this one, and its results back. Events are written in the transaction of
the change that they announce.
"""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from tradepost.access.caller import Caller, Permission
from tradepost.access.idempotency import IdempotentRequest
from tradepost.actions.change import Change, Services
from tradepost.clock import Clock
from tradepost.domain.ids import Ids
from tradepost.events import outbox
from tradepost.events.outbox import Emitter
from tradepost.problems import Duplicate, MemberError
from tradepost.storage.database import Database, Meter, UniqueViolation, Writing
from tradepost.storage.tables import member_at

T = TypeVar("T")


class Performed(NamedTuple, Generic[T]):
    """The result of an action, and whether it comes from an earlier request with the same key."""

    result: T
    replayed: bool


@dataclass
class Performer:
    """Performs calls, each in one transaction of the database."""

    database: Database
    clock: Clock
    services: Services
    ids: Ids = field(default_factory=Ids)

    @property
    def emitter(self) -> Emitter:
        return self.services.emitter

    async def perform(
        self,
        caller: Caller,
        permission: Permission | None,
        action: Callable[[Change], Awaitable[T]],
        *,
        source: str,
        request: IdempotentRequest[T] | None = None,
        traceparent: str | None = None,
        use: Meter | None = None,
    ) -> Performed[T]:
        """Runs `action` in one transaction, once per idempotent `request`, and writes its events.

        `permission` is None for actions of the service itself and of its operator. `source` is the URL of the
        service. The statements of the transaction are added to `use`, also if it fails. Raises `Forbidden`;
        `Duplicate` for a value that must be unique; `Conflict` after too many lost races; `Unavailable` if
        the database cannot be reached; and the problems of the action and of the request.
        """
        if permission is not None:
            permission.check(caller)
        announced = False

        async def work(tx: Writing) -> Performed[T]:
            nonlocal announced
            announced = False
            try:
                stored = await request.reserve(tx) if request else None
                if stored is not None:
                    return Performed(stored.result, True)
                change = Change(tx, caller, self.clock.now_ms(), self.ids, self.services, source)
                result = await action(change)
                if change.happened:
                    log = outbox.Outbox(self.emitter, source, change.now_at, traceparent, change.new_id)
                    await log.append(tx, change.happened)
                announced = bool(change.happened) or change.queued
                if request:
                    await request.store(tx, result)
                return Performed(result, False)
            finally:
                if use is not None:
                    use.add(tx)

        try:
            with request or nullcontext():
                performed = await self.database.write(work)
        except UniqueViolation as violation:
            kind, name = member_at(violation.table, violation.column)
            message = f"Another {kind} has this {name}"
            raise Duplicate(message, [MemberError((name,), message, "duplicate")]) from None
        if announced:
            self.database.wake()
        return performed
