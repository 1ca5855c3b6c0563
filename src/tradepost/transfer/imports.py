"""Importing the entities of a file: each is checked, then batches are written.

Entities that already exist stay unchanged, so a file can be imported again at any time: after a failure, a
kill, or a correction.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tradepost.domain.input import Values
from tradepost.problems import Invalid, Malformed
from tradepost.transfer.file_entity import FileEntity
from tradepost.transfer.kind import Entry, ImportOutcome, Kind
from tradepost.transfer.loading import Loading, batches
from tradepost.transfer.tally import Tally, described

_WATCH_EVERY = 500  # entities


@dataclass
class Import:
    """The import of one file. Calls `rejected` for each rejected entity, and `watch` from time to time."""

    loading: Loading
    kind: Kind
    tally: Tally
    rejected: Callable[[FileEntity, str], None]
    watch: Callable[[], None]

    async def run(self, entities: Iterable[FileEntity]) -> None:
        """Imports the whole file; raises `Unreadable` where it is damaged."""
        for batch in batches(self._entries(entities)):
            outcomes = await self.loading.write(self.kind, batch)
            for entry, outcome in zip(batch, outcomes, strict=True):
                self._count(entry.entity, outcome)
            self.watch()

    def _entries(self, entities: Iterable[FileEntity]) -> Iterator[Entry]:
        for entity in entities:
            self.tally.read += 1
            if not self.tally.read % _WATCH_EVERY:
                self.watch()
            entry = self._entry(entity)
            if entry is not None:
                yield entry

    def _entry(self, entity: FileEntity) -> Entry | None:
        """An entity that is valid by itself; None if it was rejected."""
        if entity.fault:
            self._reject(entity, entity.fault)
            return None
        try:
            entry = self.kind.entry(self._values(entity), self.loading.performer.clock.now_ms())
        except Invalid as error:
            self._count(entity, list(error.errors))
        except Malformed as error:
            self._reject(entity, error.detail.replace("The body", "The line"))
        else:
            entry.entity = entity
            return entry
        return None

    def _values(self, entity: FileEntity) -> Values:
        if isinstance(entity.members, bytes):
            return self.kind.input.read(entity.members)
        return self.kind.input.check(entity.members)

    def _count(self, entity: FileEntity, outcome: ImportOutcome) -> None:
        if outcome == "added":
            self.tally.added += 1
        elif outcome == "there":
            self.tally.there += 1
        else:
            self.tally.reject(outcome)
            self.rejected(entity, "; ".join(map(described, outcome)))

    def _reject(self, entity: FileEntity, fault: str) -> None:
        """Rejects an unreadable entity. The tally ignores numbers in the fault, and what follows a colon."""
        self.tally.reject([], re.sub(r"\d+", "…", fault.partition(":")[0]))
        self.rejected(entity, fault)
