"""Idempotency keys: claimed first, answered last, in the transaction of the write they protect."""

from sqlalchemy import bindparam, select, text

from tradepost.storage.statement import Statement
from tradepost.storage.tables import idempotency_keys

_c = idempotency_keys.c

CLAIM = Statement(
    "claims a key that is free or expired; no row if it is taken",
    text(
        "INSERT INTO idempotency_keys (api_key_id, key, fingerprint, answer, expires_at)"
        " VALUES (:api_key_id, :key, :fingerprint, NULL, :expires_at)"
        " ON CONFLICT (api_key_id, key) DO UPDATE"
        " SET fingerprint = excluded.fingerprint, answer = NULL, expires_at = excluded.expires_at"
        " WHERE idempotency_keys.expires_at < :now RETURNING api_key_id"
    ),
)

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

PURGE = Statement(
    "forgets a bounded number of expired keys",
    text(
        "DELETE FROM idempotency_keys WHERE (api_key_id, key) IN"
        " (SELECT api_key_id, key FROM idempotency_keys WHERE expires_at < :now LIMIT 1000)"
    ),
)
