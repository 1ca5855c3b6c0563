"""The event log: appended to in the writer's transaction, read in the order of (xid, seq).

On PostgreSQL a reader stays behind the oldest transaction that still runs (`pg_snapshot_xmin`): only below
that line is every position known for good. SQLite has one writer at a time, and the line is infinity.
"""

from sqlalchemy import bindparam, func, literal_column, select

from tradepost.storage.sql import sql
from tradepost.storage.statement import Statement
from tradepost.storage.tables import events, webhook_subscriptions

_APPEND = events.insert().values(
    {c.name: bindparam(c.name) for c in events.c if c.name not in ("seq", "xid")}
)
_TOLD = (
    select(webhook_subscriptions.c.endpoint_id)
    .where(webhook_subscriptions.c.pattern.in_([bindparam("every"), bindparam("family"), bindparam("name")]))
    .distinct()
    .subquery()
)

APPEND = Statement("appends an event to the log", _APPEND)

APPEND_ONE = Statement(
    "the same, and which endpoints are to be told of it, with commas between: one round trip for both",
    _APPEND.returning(select(func.string_agg(_TOLD.c.endpoint_id, literal_column("','"))).scalar_subquery()),
)

MOMENT = sql("events.moment")
AFTER = sql("events.after")
PIECE = sql("events.piece")
PURGE = sql("events.purge")
