"""The tail of the log: what is new since a position, each event once and none skipped.

A position is final only once no transaction runs any more that could write before it: on PostgreSQL, one that
commits late holds up the events behind its own, and is not skipped. SQLite has one writer at a time.
"""

from typing import NamedTuple

from tradepost.storage.database import Reading, Row
from tradepost.storage.statements import events


class Position(NamedTuple):
    """A place in the log: (writing transaction, sequence number)."""

    xid: int = 0
    seq: int = 0


class LogSnapshot(NamedTuple):
    """Which events were committed when it was taken: all up to `start`, and those of ended transactions."""

    start: Position
    end: int
    running: frozenset[int]

    def includes(self, position: Position) -> bool:
        """Whether the event at `position` was committed: transactions below `end` that were not running."""
        return position <= self.start or (position.xid < self.end and position.xid not in self.running)


class NewEvents(NamedTuple):
    """Events as (position, (id, type, subject, time)); `held_up` if more are committed but not final."""

    events: list[tuple[Position, Row]]
    held_up: bool


async def snapshot(reading: Reading) -> LogSnapshot:
    """Which events are committed now; those that are committed later come after its `start`."""
    row = await reading.row(events.MOMENT)
    assert row is not None
    first, end, running = row[0].split(":")
    running_xids = frozenset(int(each) for each in running.split(",") if each)
    return LogSnapshot(Position(int(first), row[1]), int(end), running_xids)


async def after(reading: Reading, position: Position, limit: int) -> NewEvents:
    """Up to `limit` events behind `position`, in the order of the log."""
    rows = await reading.rows(events.AFTER, xid=position.xid, seq=position.seq, limit=limit)
    final = [(Position(row[1], row[2]), row[3:]) for row in rows if row[1] < row[0]]
    return NewEvents(final, held_up=len(final) < len(rows))
