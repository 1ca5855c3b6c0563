"""The event log: appended to in the writer's transaction, read in the order of (xid, seq).

On PostgreSQL a reader stays behind the oldest transaction that still runs (`pg_snapshot_xmin`): only below
that line is every position known for good. SQLite has one writer at a time, and the line is infinity.
"""

from typing import Any

from sqlalchemy import and_, bindparam, func, literal_column, select, text, tuple_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement, ColumnElement

from tradepost.storage.statement import Statement, either
from tradepost.storage.tables import BIG, events, webhook_subscriptions

_c = events.c


class _horizon(ColumnElement[int]):  # noqa: N801 (reads as SQL does)
    """Below which transaction everything is settled."""

    inherit_cache = True


@compiles(_horizon, "sqlite")
def _horizon_sqlite(_element: _horizon, _compiler: SQLCompiler, **_kwargs: Any) -> str:
    return "1"


@compiles(_horizon, "postgresql")
def _horizon_postgres(_element: _horizon, _compiler: SQLCompiler, **_kwargs: Any) -> str:
    return "(SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint)"


class _moment(ClauseElement):  # noqa: N801
    """Which transactions are over, and the last event of a log whose writers follow one another."""

    inherit_cache = True


@compiles(_moment, "sqlite")
def _moment_sqlite(_element: _moment, _compiler: SQLCompiler, **_kwargs: Any) -> str:
    return "SELECT '0:0:', coalesce(max(seq), 0) FROM events"


@compiles(_moment, "postgresql")
def _moment_postgres(_element: _moment, _compiler: SQLCompiler, **_kwargs: Any) -> str:
    return "SELECT pg_current_snapshot()::text, 0"


_APPEND = events.insert().values({c.name: bindparam(c.name) for c in _c if c.name not in ("seq", "xid")})
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

MOMENT = Statement("which events are in the log now: a snapshot, and a sequence number", _moment())

# SQLite seeks a pair by its first half alone, and would walk the whole log; there `xid` is always 0.
_BEHIND = either(
    sqlite=and_(_c.xid == literal_column("0"), _c.seq > bindparam("seq", type_=BIG)),
    postgresql=tuple_(_c.xid, _c.seq) > tuple_(bindparam("xid", type_=BIG), bindparam("seq", type_=BIG)),
)

AFTER = Statement(
    "what was committed to the log after a position, and the horizon below which it is settled",
    select(_horizon(), _c.xid, _c.seq, _c.id, _c.type, _c.subject, _c.time)
    .where(_BEHIND)
    .order_by(_c.xid, _c.seq)
    .limit(bindparam("limit", type_=BIG)),
)

PIECE = Statement(
    "the last of the next thousand events behind an id and before another",
    text(
        "SELECT max(id) FROM (SELECT id FROM events WHERE id > :after AND id < :before"
        " ORDER BY id LIMIT 1000) piece"
    ),
)

# The newest event stays: SQLite counts on from it, so that no position is ever given twice.
PURGE = Statement(
    "forgets the events of a piece, but for those that are still to be delivered",
    text(
        "DELETE FROM events WHERE id > :after AND id <= :upto AND seq < (SELECT max(seq) FROM events)"
        " AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d"
        " WHERE d.event_id = events.id AND d.next_attempt_at IS NOT NULL)"
    ),
)
