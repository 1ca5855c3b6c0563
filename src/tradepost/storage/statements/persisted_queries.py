"""Persisted queries: GraphQL documents by their hash, bounded in number."""

from sqlalchemy import bindparam, select

from tradepost.storage.sql import sql
from tradepost.storage.statement import Statement
from tradepost.storage.tables import persisted_queries

_c = persisted_queries.c

FIND = Statement(
    "the document with this hash, and the time of its last use",
    select(_c.document, _c.used_at).where(_c.hash == bindparam("hash")),
)

KEEP = sql("persisted_queries.keep")

TOUCH = Statement(
    "records the last use of a document",
    persisted_queries.update().where(_c.hash == bindparam("at_hash")).values(used_at=bindparam("now")),
)

TRIM = sql("persisted_queries.trim")
