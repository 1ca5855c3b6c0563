"""A change in progress: its transaction, its caller and moment, and the events that it will announce."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from tradepost.access.caller import Caller
from tradepost.access.sealing import Sealer
from tradepost.clock import instant
from tradepost.domain.ids import Ids
from tradepost.domain.record import Record
from tradepost.egress.targets import Targets
from tradepost.events.outbox import Emitter, Happened
from tradepost.storage.database import Row, Writing
from tradepost.storage.record_statements import R, statements_of

Rows = list[Row]  # an item as it is read: its row, or a row for each embedded child

_T = TypeVar("_T", bound=Record)


@dataclass(frozen=True)
class Services:
    """The services that an action may need besides its transaction."""

    emitter: Emitter
    sealer: Sealer
    targets: Targets


class Change:
    """What an action works with. Its instants and ids are those of one moment, `now_at`."""

    __slots__ = (
        "_ids",
        "caller",
        "happened",
        "now_at",
        "now_ms",
        "queued",
        "revealed",
        "services",
        "source",
        "tx",
    )

    def __init__(
        self, tx: Writing, caller: Caller, now_ms: int, ids: Ids, services: Services, source: str
    ) -> None:
        self.tx = tx
        self.caller = caller
        self.now_ms = now_ms
        self.now_at = instant(now_ms)
        self.happened: list[Happened] = []
        self.revealed: dict[str, str] = {}  # secrets that are shown once, in the answer
        self.queued = False  # whether there are deliveries that no event announces
        self.services = services
        self.source = source  # the URL of the service, as the source of events
        self._ids = ids

    def new_id(self, at_ms: int | None = None) -> str:
        """A new id of this moment, or of `at_ms` for an item that was created in the past."""
        return self._ids.new(self.now_ms if at_ms is None else at_ms)

    def announce(self, event: str, plural: str, entity_id: str) -> None:
        """Adds the event `event` (`order.placed`) of an entity; it is written with the change."""
        self.happened.append(Happened(self._ids.new(self.now_ms), event, plural, entity_id))

    async def add(self, item: Record, **columns: Any) -> Row:
        """Inserts an item, with `columns` that are no members; returns its row. Raises `UniqueViolation`."""
        statements = statements_of(type(item))
        row = statements.row(item)
        values = statements.columns_of(row)
        values.update(columns)
        await self.tx.run(statements.insert, **values)
        return row

    async def add_many(self, items: Sequence[R], columns: Sequence[dict[str, Any]] = ()) -> list[Row]:
        """Inserts items of one record in one round trip, each with its `columns` that are no members.

        Returns their rows. Raises `UniqueViolation`.
        """
        if not items:
            return []
        statements = statements_of(type(items[0]))
        rows = list(map(statements.row, items))
        values = list(map(statements.columns_of, rows))
        for each, more in zip(values, columns, strict=False):
            each.update(more)
        await self.tx.many(statements.insert, values)
        return rows

    async def update(self, item: _T) -> _T:
        """Updates an item as one more version of it; returns that. Raises `UniqueViolation`."""
        item = msgspec.structs.replace(item, version=item.version + 1, updated_at=self.now_at)
        statements = statements_of(type(item))
        values = {f"new_{name}": value for name, value in statements.columns_of(statements.row(item)).items()}
        await self.tx.run(statements.update, at_id=item.id, **values)
        return item

    async def remove(self, item: Record) -> None:
        """Deletes an item, or hides it where its record says so."""
        await self.tx.run(statements_of(type(item)).delete, id=item.id, now=self.now_at)
