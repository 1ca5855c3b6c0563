"""Bearer API keys, looked up by their hash as the REST peer does, and remembered for a moment."""

import time
from dataclasses import dataclass

from sqlalchemy import select

from benchmarks.peers.fastapi_sqlalchemy.access import hash_of
from benchmarks.peers.fastapi_sqlalchemy.database import Sessions
from benchmarks.peers.fastapi_sqlalchemy.tables import ApiKey, now

_REMEMBERED = 0.8
_SCHEME = "Bearer "


@dataclass(frozen=True)
class _Known:
    scopes: frozenset[str]
    until: float


class Keys:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._known: dict[str, _Known] = {}

    async def scopes_of(self, authorization: str) -> frozenset[str] | None:
        """What the key in an `Authorization` header may do; None if it is no key of ours."""
        if not authorization.startswith(_SCHEME):
            return None
        digest = hash_of(authorization.removeprefix(_SCHEME))
        known = self._known.get(digest)
        if known is not None and known.until > time.monotonic():
            return known.scopes
        return await self._looked_up(digest)

    async def _looked_up(self, digest: str) -> frozenset[str] | None:
        async with self._sessions.reading() as session:
            key = await session.scalar(select(ApiKey).where(ApiKey.hash == digest))
        if key is None or key.revoked_at or (key.expires_at and key.expires_at <= now()):
            self._known.pop(digest, None)
            return None
        scopes = frozenset(key.scopes)
        self._known[digest] = _Known(scopes, time.monotonic() + _REMEMBERED)
        return scopes
