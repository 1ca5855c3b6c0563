"""A change in progress: the transaction, who makes it and when, and what it will have announced."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tradepost.access.caller import Caller
from tradepost.access.sealing import Sealer
from tradepost.clock import instant
from tradepost.domain.ids import Ids
from tradepost.domain.record import Record
from tradepost.egress.targets import Targets
from tradepost.events.outbox import Emitter, Happened
from tradepost.storage.database import Row, Writing
from tradepost.storage.plain import plain

Rows = list[Row]  # a record as it is read: its row, or a row for each embedded child


@dataclass(frozen=True)
class Means:
    """What the service has for actions that need more than a transaction."""

    emitter: Emitter
    sealer: Sealer
    targets: Targets


class Change:
    """What an action works with. Instants and ids are those of one moment, `now`."""

    __slots__ = ("_ids", "caller", "happened", "means", "now", "now_ms", "queued", "revealed", "source", "tx")

    def __init__(self, tx: Writing, caller: Caller, now_ms: int, ids: Ids, means: Means, source: str) -> None:
        self.tx = tx
        self.caller = caller
        self.now_ms = now_ms
        self.now = instant(now_ms)
        self.happened: list[Happened] = []
        self.revealed: dict[str, str] = {}  # secrets that are shown this once, beside the record
        self.queued = False  # there is something to deliver that no event announces
        self.means = means
        self.source = source  # the address of the service, as the call knows it
        self._ids = ids

    def new_id(self, at_ms: int | None = None) -> str:
        """The id of something created now, or at `at_ms` if it is history that is being written."""
        return self._ids.new(self.now_ms if at_ms is None else at_ms)

    def announce(self, event: str, plural: str, entity_id: str) -> None:
        """Notes that `event` (`order.placed`) happened to an entity; it is written with the change."""
        self.happened.append(Happened(self._ids.new(self.now_ms), event, plural, entity_id))

    async def add(self, record: type[Record], values: Mapping[str, Any]) -> Row:
        """Adds a row; the missing columns get their defaults."""
        statements = plain(record)
        given = {**dict.fromkeys(statements.table.c.keys()), "version": 1, **values}
        await self.tx.run(statements.insert, **given)
        return tuple(given[name] for name in statements.names)
