"""The event log: appended to in the writer's transaction, and read in the order of (xid, seq).

On PostgreSQL, readers stay below the horizon, the oldest transaction still running (`pg_snapshot_xmin`): only
below it are all positions final. SQLite has one writer at a time, and no horizon.
"""

from sqlalchemy import bindparam, func, literal_column, select

from tradepost.storage.sql import sql
from tradepost.storage.statement import Statement
from tradepost.storage.tables import events, webhook_subscriptions

_APPEND = events.insert().values(
    {c.name: bindparam(c.name) for c in events.c if c.name not in ("seq", "xid")}
)
_RECIPIENTS = (
    select(webhook_subscriptions.c.endpoint_id)
    .where(webhook_subscriptions.c.pattern.in_([bindparam("every"), bindparam("family"), bindparam("name")]))
    .distinct()
    .subquery()
)

APPEND = Statement("appends an event to the log", _APPEND)

APPEND_ONE = Statement(
    "appends an event, and returns the comma-separated ids of the endpoints that receive it",
    _APPEND.returning(
        select(func.string_agg(_RECIPIENTS.c.endpoint_id, literal_column("','"))).scalar_subquery()
    ),
)

MOMENT = sql("events.moment")
AFTER = sql("events.after")
BATCH_END = sql("events.batch_end")
PURGE = sql("events.purge")
