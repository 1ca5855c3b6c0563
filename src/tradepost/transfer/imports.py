"""The import: entities of a file, judged one by one and loaded.

What is there already is left alone, so a file can be read again whenever that seems wise: after a failure, a
kill, or a change.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tradepost.domain.input import Values
from tradepost.problems import Invalid, Malformed
from tradepost.transfer.given import Given
from tradepost.transfer.kind import Entry, Kind, Outcome
from tradepost.transfer.loading import Loading, batches
from tradepost.transfer.tally import Tally, said

_WATCHED = 500  # entities after which whoever watches is told


@dataclass
class Import:
    """One file on its way in. `rejected` is told of every entity that stays out, `watch` now and then."""

    loading: Loading
    kind: Kind
    tally: Tally
    rejected: Callable[[Given, str], None]
    watch: Callable[[], None]

    async def run(self, entities: Iterable[Given]) -> None:
        """Reads to the end."""
        for batch in batches(self._entries(entities)):
            outcomes = await self.loading.write(self.kind, batch)
            for entry, outcome in zip(batch, outcomes, strict=True):
                self._count(entry.given, outcome)
            self.watch()

    def _entries(self, entities: Iterable[Given]) -> Iterator[Entry]:
        for given in entities:
            self.tally.read += 1
            if not self.tally.read % _WATCHED:
                self.watch()
            entry = self._entry(given)
            if entry is not None:
                yield entry

    def _entry(self, given: Given) -> Entry | None:
        """An entity that is fine by itself; None if it was rejected."""
        if given.fault:
            self._reject(given, given.fault)
            return None
        try:
            entry = self.kind.entry(self._values(given), self.loading.performer.clock.now())
        except Invalid as error:
            self._count(given, list(error.errors))
        except Malformed as error:
            self._reject(given, error.detail.replace("The body", "The line"))
        else:
            entry.given = given
            return entry
        return None

    def _values(self, given: Given) -> Values:
        if isinstance(given.members, bytes):
            return self.kind.input.read(given.members)
        return self.kind.input.check(given.members)

    def _count(self, given: Given, outcome: Outcome) -> None:
        if outcome == "added":
            self.tally.added += 1
        elif outcome == "there":
            self.tally.there += 1
        else:
            self.tally.reject(outcome)
            self.rejected(given, "; ".join(map(said, outcome)))

    def _reject(self, given: Given, fault: str) -> None:
        """Rejects what could not be read; a fault is of the same kind up to its numbers and its colon."""
        self.tally.reject([], re.sub(r"\d+", "…", fault.partition(":")[0]))
        self.rejected(given, fault)
