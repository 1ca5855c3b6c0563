"""The waist of the house: one call, one transaction.

    caller → scope → input → transaction ( idempotency row → action → event rows → kept answer ) → commit

Every surface translates to this and from it. What a call announces is written with what it changes.
"""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple

from tradepost.access.caller import Caller
from tradepost.access.idempotency import Answer, Once
from tradepost.actions.change import Change, Means
from tradepost.actions.plain import column_of
from tradepost.clock import Clock
from tradepost.domain.ids import Ids
from tradepost.domain.record import Record
from tradepost.events import outbox
from tradepost.events.outbox import Emitter
from tradepost.problems import Duplicate, MemberError
from tradepost.storage.database import Database, UniqueViolation, Writing


class Performed(NamedTuple):
    """The answer, whether it was given before, and what the transaction took."""

    answer: Answer
    replayed: bool
    statements: int
    nanoseconds: int


@dataclass
class Performer:
    """What calls are performed with."""

    database: Database
    clock: Clock
    means: Means
    ids: Ids = field(default_factory=Ids)

    @property
    def emitter(self) -> Emitter:
        return self.means.emitter

    async def perform(
        self,
        caller: Caller,
        action: Callable[[Change], Awaitable[Answer]],
        *,
        record: type[Record],
        once: Once | None = None,
        traceparent: str | None = None,
        source: str,
    ) -> Performed:
        """Runs `action` in one transaction, once under its idempotency key, and writes what it announces."""
        announced = False

        async def work(tx: Writing) -> Performed:
            nonlocal announced
            announced = False
            kept = await once.claim(tx) if once else None
            if kept is not None:
                return Performed(kept, True, tx.statements, tx.nanoseconds)
            change = Change(tx, caller, self.clock.now(), self.ids, self.means, source)
            answer = await action(change)
            if change.happened:
                log = outbox.Outbox(self.emitter, source, change.now, traceparent, change.new_id)
                await log.append(tx, change.happened)
            announced = bool(change.happened) or change.queued
            if once:
                await once.keep(tx, answer)
            return Performed(answer, False, tx.statements, tx.nanoseconds)

        try:
            with once or nullcontext():
                performed = await self.database.write(work)
        except UniqueViolation as violation:
            name = column_of(record, violation.column)
            message = f"Another {record.kind} has this {name}"
            raise Duplicate(message, [MemberError((name,), message, "duplicate")]) from None
        if announced:
            self.database.wake()
        return performed
