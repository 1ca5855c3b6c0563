"""Idempotency keys: reserved first and completed last, in the transaction of the write that they protect."""

from sqlalchemy import bindparam, select

from tradepost.storage.sql import sql
from tradepost.storage.statement import Statement
from tradepost.storage.tables import idempotency_keys

_c = idempotency_keys.c

RESERVE = sql("idempotency_keys.reserve")

FIND = Statement(
    "the fingerprint and the stored result of a key",
    select(_c.fingerprint, _c.answer).where(
        _c.api_key_id == bindparam("api_key_id"), _c.key == bindparam("key")
    ),
)

STORE = Statement(
    "stores a result for its key",
    idempotency_keys.update()
    .where(_c.api_key_id == bindparam("at_api_key_id"), _c.key == bindparam("at_key"))
    .values(answer=bindparam("new_answer")),
)

PURGE = sql("idempotency_keys.purge")
