"""Persisted queries: GraphQL documents by their hash, so many and no more."""

from sqlalchemy import bindparam, select, text

from tradepost.storage.statement import Statement
from tradepost.storage.tables import persisted_queries

_c = persisted_queries.c

FIND = Statement(
    "the document with this hash, and when it was last used",
    select(_c.document, _c.used_at).where(_c.hash == bindparam("hash")),
)

KEEP = Statement(
    "keeps a document, or notes that it is used",
    text(
        "INSERT INTO persisted_queries (hash, document, used_at) VALUES (:hash, :document, :now)"
        " ON CONFLICT (hash) DO UPDATE SET used_at = excluded.used_at"
    ),
)

TOUCH = Statement(
    "notes that a document is used",
    persisted_queries.update().where(_c.hash == bindparam("at_hash")).values(used_at=bindparam("now")),
)

TRIM = Statement(
    "forgets all but the `kept` documents that were used last; to be run where one is kept",
    text(
        "DELETE FROM persisted_queries WHERE hash IN (SELECT hash FROM persisted_queries"
        " ORDER BY used_at DESC, hash DESC LIMIT 9223372036854775807 OFFSET :kept)"
    ),
)
