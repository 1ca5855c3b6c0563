"""API keys: authentication, last use and revocation."""

from sqlalchemy import bindparam, select

from tradepost.storage.statement import ONE, Statement
from tradepost.storage.tables import api_keys

_c = api_keys.c

BY_HASH = Statement(
    "the key with this hash",
    select(_c.id, _c.hash, _c.scopes, _c.user_id, _c.expires_at, _c.revoked_at, _c.last_used_at).where(
        _c.hash == bindparam("hash")
    ),
)

TOUCH = Statement(
    "records the last use of a key",
    api_keys.update()
    .where(_c.id == bindparam("key_id"))
    .values(last_used_at=bindparam("now"), version=_c.version + ONE),
)

REVOKE = Statement(
    "revokes a key unless it is revoked",
    api_keys.update()
    .where(_c.id == bindparam("key_id"), _c.revoked_at.is_(None))
    .values(revoked_at=bindparam("now"), version=_c.version + ONE),
)

ANY = Statement("whether any key exists", select(_c.id).limit(1))
