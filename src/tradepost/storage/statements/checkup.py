"""What the doctor asks a database about itself."""

from sqlalchemy import select, text

from tradepost.storage.statement import Statement
from tradepost.storage.tables import events

SQLITE = Statement(
    "how SQLite keeps its journal, and when it waits for the disk",
    text(
        "SELECT (SELECT journal_mode FROM pragma_journal_mode), (SELECT synchronous FROM pragma_synchronous)"
    ),
)

POSTGRES = Statement(
    "PostgreSQL's version and the settings that keep promises, its connections, and its clock",
    text(
        "SELECT current_setting('server_version_num'), current_setting('server_version'),"
        " current_setting('synchronous_commit'), current_setting('fsync'),"
        " current_setting('full_page_writes'), current_setting('max_connections'),"
        " (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),"
        " CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"
    ),
)

NEWEST_EVENT = Statement(
    "when the newest event happened",
    select(events.c.time).order_by(events.c.xid.desc(), events.c.seq.desc()).limit(1),
)
