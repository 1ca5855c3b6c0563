"""The event log: appended to in the writer's transaction, read in the order of (xid, seq).

On PostgreSQL a reader stays behind the oldest transaction that still runs (`pg_snapshot_xmin`): only below
that line is every position known for good. SQLite has one writer at a time, and the line is infinity.
"""

from typing import Any

from sqlalchemy import and_, bindparam, literal_column, select, text, tuple_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement, ColumnElement

from tradepost.storage.statement import Statement, either
from tradepost.storage.tables import BIG, events

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


APPEND = Statement(
    "appends an event to the log",
    events.insert().values({c.name: bindparam(c.name) for c in _c if c.name not in ("seq", "xid")}),
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

# The newest event stays: SQLite counts on from it, so that no position is ever given twice.
PURGE = Statement(
    "forgets a bounded number of events from before an id",
    text(
        "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE id < :before"
        " AND seq < (SELECT max(seq) FROM events) ORDER BY id LIMIT 1000)"
    ),
)
