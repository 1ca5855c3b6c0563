"""API keys at the door: how they look, and who they are.

A key is `tp_<prefix>_<secret>`; only its SHA-256 is kept. A key that was seen is remembered by its digest for
less than a second, so that revocation and expiry work within one on every process.
"""

import asyncio
import hashlib
import hmac
import logging
import secrets
import string
import time
from collections.abc import Awaitable
from typing import NamedTuple

import msgspec

from tradepost.access.caller import Caller
from tradepost.clock import Clock, instant, parse_instant
from tradepost.domain.scope import granted
from tradepost.problems import Problem, Unauthenticated
from tradepost.storage.database import Database, Writing
from tradepost.storage.statements import api_keys

_log = logging.getLogger("tradepost.access")

_REMEMBERED_SECONDS = 0.8
_REMEMBERED_KEYS = 4096
_TOUCH_MS = (
    60_000  # `lastUsedAt` is exact to a minute: a write for each request would cost more than it tells
)
_ALPHABET = string.ascii_letters + string.digits
_MISSING = 'Bearer realm="tradepost"'
_INVALID = 'Bearer realm="tradepost", error="invalid_token"'


class NewKey(NamedTuple):
    """A key at the only moment when it is known."""

    key: str
    prefix: str
    hash: str


def new_key() -> NewKey:
    """A key nobody has: 190 bits of secret."""
    prefix = "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(8))
    secret = "".join(secrets.choice(_ALPHABET) for _ in range(32))
    key = f"tp_{prefix}_{secret}"
    return NewKey(key, prefix, hashlib.sha256(key.encode()).hexdigest())


class Doorkeeper:
    """Knows callers by their `Authorization` header (RFC 6750)."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._remembered: dict[bytes, tuple[float, Caller]] = {}
        self._touched: dict[str, int] = {}
        self._touching: set[asyncio.Task[None]] = set()

    def caller(self, authorization: bytes | None) -> Caller | Awaitable[Caller]:
        """Who sends this header: at once if remembered, else to be awaited; raises `Unauthenticated`."""
        if authorization is None:
            message = "The request carries no API key"
            raise Unauthenticated(message, challenge=_MISSING)
        digest = hashlib.sha256(authorization).digest()
        remembered = self._remembered.get(digest)
        if remembered is not None and remembered[0] > time.monotonic():
            return remembered[1]
        return self._learn(authorization, digest)

    async def finish(self) -> None:
        """Waits for the notes of use that are still being written."""
        await asyncio.gather(*self._touching)

    async def _learn(self, authorization: bytes, digest: bytes) -> Caller:
        caller = await self._look_up(authorization)
        if len(self._remembered) >= _REMEMBERED_KEYS:
            self._remembered.clear()
        self._remembered[digest] = (time.monotonic() + _REMEMBERED_SECONDS, caller)
        return caller

    async def _look_up(self, authorization: bytes) -> Caller:
        scheme, _, token = authorization.partition(b" ")
        token = token.strip(b" ")
        if scheme.lower() != b"bearer" or not token.startswith(b"tp_"):
            message = 'The Authorization header must be "Bearer tp_…"'
            raise Unauthenticated(message, challenge=_INVALID)
        hashed = hashlib.sha256(token).hexdigest()
        row = await self._database.reading().row(api_keys.BY_HASH, hash=hashed)
        now = self._clock.now()
        if (
            row is None
            or not hmac.compare_digest(row[1], hashed)
            or row[5] is not None
            or _expired(row[4], now)
        ):
            message = "The API key is unknown, expired or revoked"
            raise Unauthenticated(message, challenge=_INVALID)
        self._note_use(row[0], row[6], now)
        scopes = granted(msgspec.json.decode(row[2], type=list[str]))
        return Caller(key_id=row[0], scopes=scopes, user_id=row[3], token=token, expires_at=row[4])

    def _note_use(self, key_id: str, last_used_at: str | None, now: int) -> None:
        known = self._touched.get(key_id, 0 if last_used_at is None else parse_instant(last_used_at))
        if now - known < _TOUCH_MS:
            return
        self._touched[key_id] = now
        task = asyncio.create_task(self._touch(key_id, instant(now)))
        self._touching.add(task)
        task.add_done_callback(self._touching.discard)

    async def _touch(self, key_id: str, now: str) -> None:
        async def touch(tx: Writing) -> None:
            await tx.run(api_keys.TOUCH, key_id=key_id, now=now)

        try:
            await self._database.write(touch)
        except Problem:
            _log.warning("could not note that key %s was used", key_id)


def _expired(expires_at: str | None, now: int) -> bool:
    return expires_at is not None and parse_instant(expires_at) <= now
