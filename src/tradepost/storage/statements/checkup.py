"""What the doctor asks a database about itself."""

from sqlalchemy import select

from tradepost.storage.sql import sql
from tradepost.storage.statement import Statement
from tradepost.storage.tables import events

SETTINGS = sql("checkup.settings")


NEWEST_EVENT = Statement(
    "when the newest event happened",
    select(events.c.time).order_by(events.c.xid.desc(), events.c.seq.desc()).limit(1),
)
