"""The event log: appended to in the writer's transaction, read in the order of (xid, seq).

On PostgreSQL a reader stays behind the oldest transaction that still runs (`pg_snapshot_xmin`): only below
that line is every position known for good. SQLite has one writer at a time, and the line is infinity.
"""

from sqlalchemy import bindparam, select, text, tuple_

from tradepost.domain.event import Event
from tradepost.storage.plain import plain
from tradepost.storage.statement import Statement, settled
from tradepost.storage.tables import BIG, events

_c = events.c


APPEND = Statement(
    "appends an event to the log",
    events.insert().values({c.name: bindparam(c.name) for c in _c if c.name not in ("seq", "xid")}),
)

AFTER = Statement(
    "what the log holds after a position",
    select(_c.xid, _c.seq, *plain(Event).columns)
    .where(
        settled(), tuple_(_c.xid, _c.seq) > tuple_(bindparam("xid", type_=BIG), bindparam("seq", type_=BIG))
    )
    .order_by(_c.xid, _c.seq)
    .limit(bindparam("limit", type_=BIG)),
)

PURGE = Statement(
    "forgets a bounded number of events from before an id",
    text("DELETE FROM events WHERE id IN (SELECT id FROM events WHERE id < :before ORDER BY id LIMIT 1000)"),
)
