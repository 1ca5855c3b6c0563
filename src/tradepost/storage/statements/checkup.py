"""Facts about the database, for the doctor."""

from sqlalchemy import select

from tradepost.storage.sql import sql
from tradepost.storage.statement import Statement
from tradepost.storage.tables import events

SETTINGS = sql("checkup.settings")


NEWEST_EVENT = Statement(
    "the time of the newest event",
    select(events.c.time).order_by(events.c.xid.desc(), events.c.seq.desc()).limit(1),
)
