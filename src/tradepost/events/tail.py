"""The tail of the log: what is new since a position, each event once and none skipped.

A position is final only once no transaction runs any more that could write before it: whoever commits late
on PostgreSQL holds up what came after it, and is not skipped. SQLite's writers follow one another.
"""

from typing import NamedTuple

from tradepost.storage.database import Reading, Row
from tradepost.storage.statements import events


class Position(NamedTuple):
    """A place in the log: (writing transaction, sequence number)."""

    xid: int = 0
    seq: int = 0


class Moment(NamedTuple):
    """Which events were committed when it was taken."""

    start: Position
    end: int
    running: frozenset[int]

    def had(self, position: Position) -> bool:
        """Whether the event at `position` had been committed: transactions below `end` that did not run."""
        return position <= self.start or (position.xid < self.end and position.xid not in self.running)


class News(NamedTuple):
    """Events as (position, (id, type, subject, time)); `held_up` if more are committed but not settled."""

    events: list[tuple[Position, Row]]
    held_up: bool


async def now(reading: Reading) -> Moment:
    """The present moment; whatever commits later is behind its `start`."""
    row = await reading.row(events.MOMENT)
    assert row is not None
    first, end, running = row[0].split(":")
    return Moment(
        Position(int(first), row[1]), int(end), frozenset(int(each) for each in running.split(",") if each)
    )


async def after(reading: Reading, position: Position, limit: int) -> News:
    """Up to `limit` events behind `position`, in the log's order."""
    found = await reading.rows(events.AFTER, xid=position.xid, seq=position.seq, limit=limit)
    settled = [(Position(row[1], row[2]), row[3:]) for row in found if row[1] < row[0]]
    return News(settled, held_up=len(settled) < len(found))
