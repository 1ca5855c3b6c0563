"""Writing entries in batches, each in one transaction with its events.

A batch that the database refuses is tried again: after a race lost to another writer, the entry is already
there. A batch that is still refused is written in halves, until the offending entry is alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tradepost.access.caller import Caller
from tradepost.actions.change import Change
from tradepost.perform import Performer
from tradepost.problems import Duplicate, MemberError
from tradepost.transfer.kind import Entry, ImportOutcome, Kind

# A batch shares one commit and the index pages that its rows change. Larger ones would keep writers waiting.
_BATCH_ENTRIES = 5_000
_BATCH_ROWS = 20_000
_ATTEMPTS = 3


@dataclass
class Loading:
    """Writes entries for a caller; `source` is the source of their events."""

    performer: Performer
    caller: Caller
    source: str

    async def write(self, kind: Kind, batch: Sequence[Entry]) -> list[ImportOutcome]:
        """Writes the entries that are not there yet; returns the outcome for each."""
        refused: tuple[MemberError, ...] = ()
        for _ in range(_ATTEMPTS):
            try:
                return await self._write(kind, batch)
            except Duplicate as problem:
                refused = problem.errors
        if len(batch) == 1:
            return [list(refused)]
        middle = len(batch) // 2
        return [*await self.write(kind, batch[:middle]), *await self.write(kind, batch[middle:])]

    async def _write(self, kind: Kind, batch: Sequence[Entry]) -> list[ImportOutcome]:
        async def action(change: Change) -> list[ImportOutcome]:
            return await kind.add(change, batch)

        return (await self.performer.perform(self.caller, None, action, source=self.source)).result


def batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """The entries in batches of bounded size."""
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
