"""Persisted queries: GraphQL documents by their hash, so many and no more."""

from sqlalchemy import bindparam, select

from tradepost.storage.sql import sql
from tradepost.storage.statement import Statement
from tradepost.storage.tables import persisted_queries

_c = persisted_queries.c

FIND = Statement(
    "the document with this hash, and when it was last used",
    select(_c.document, _c.used_at).where(_c.hash == bindparam("hash")),
)

KEEP = sql("persisted_queries.keep")

TOUCH = Statement(
    "notes that a document is used",
    persisted_queries.update().where(_c.hash == bindparam("at_hash")).values(used_at=bindparam("now")),
)

TRIM = sql("persisted_queries.trim")
