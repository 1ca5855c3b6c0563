"""The tail of the log: what is new since a position, each event once and none skipped.

The rule that makes it so is in the statement (`storage/statements/events.py`): on PostgreSQL only what no
running transaction can still come before is read.
"""

from typing import Any, NamedTuple

from tradepost.storage.database import Reading
from tradepost.storage.statements import events


class Position(NamedTuple):
    """A place in the log: (writing transaction, sequence number)."""

    xid: int = 0
    seq: int = 0


async def after(reading: Reading, position: Position, limit: int) -> list[tuple[Position, tuple[Any, ...]]]:
    """Up to `limit` events behind `position`, in the log's order, each with its own position."""
    found = await reading.rows(events.AFTER, xid=position.xid, seq=position.seq, limit=limit)
    return [(Position(row[0], row[1]), tuple(row[2:])) for row in found]
