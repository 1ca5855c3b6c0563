"""The loading: entries are written in batches, each in one transaction, with all they announce.

A batch that the database refuses is tried again, for a race lost to another writer turns into "there
already"; what is still refused is written in halves, until the entry that spoils it stands alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tradepost.access.caller import Caller
from tradepost.access.idempotency import Answer
from tradepost.actions.change import Change
from tradepost.perform import Performer
from tradepost.problems import Duplicate, MemberError
from tradepost.transfer.kind import Entry, Kind, Outcome

# A batch shares a commit, and the pages of the indexes that its rows dirty; other writers wait for no more.
_BATCH_ENTRIES = 5_000
_BATCH_ROWS = 20_000
_TRIES = 3


@dataclass
class Loading:
    """Whoever loads, and what the events of it give as their source."""

    performer: Performer
    caller: Caller
    source: str

    async def write(self, kind: Kind, batch: Sequence[Entry]) -> list[Outcome]:
        """Writes what is not there yet; what became of each entry."""
        refused: tuple[MemberError, ...] = ()
        for _ in range(_TRIES):
            try:
                return await self._write(kind, batch)
            except Duplicate as problem:
                refused = problem.errors
        if len(batch) == 1:
            return [list(refused)]
        middle = len(batch) // 2
        return [*await self.write(kind, batch[:middle]), *await self.write(kind, batch[middle:])]

    async def _write(self, kind: Kind, batch: Sequence[Entry]) -> list[Outcome]:
        outcomes: list[Outcome] = []

        async def action(change: Change) -> Answer:
            outcomes[:] = await kind.add(change, batch)
            return Answer(201, [], b"")

        await self.performer.perform(self.caller, action, record=kind.record, source=self.source)
        return outcomes


def batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Entries as they are written together."""
    batch: list[Entry] = []
    rows = 0
    for entry in entries:
        batch.append(entry)
        rows += entry.rows
        if len(batch) >= _BATCH_ENTRIES or rows >= _BATCH_ROWS:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch
