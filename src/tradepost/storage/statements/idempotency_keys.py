"""Idempotency keys: claimed first, answered last, in the transaction of the write they protect."""

from sqlalchemy import bindparam, select

from tradepost.storage.sql import sql
from tradepost.storage.statement import Statement
from tradepost.storage.tables import idempotency_keys

_c = idempotency_keys.c

CLAIM = sql("idempotency_keys.claim")

FIND = Statement(
    "what a taken key was used for, and its answer",
    select(_c.fingerprint, _c.answer).where(
        _c.api_key_id == bindparam("api_key_id"), _c.key == bindparam("key")
    ),
)

ANSWER = Statement(
    "keeps the answer under its key",
    idempotency_keys.update()
    .where(_c.api_key_id == bindparam("at_api_key_id"), _c.key == bindparam("at_key"))
    .values(answer=bindparam("new_answer")),
)

PURGE = sql("idempotency_keys.purge")
