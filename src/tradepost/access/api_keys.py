"""API keys: their format, and the authentication of callers by them.

A key is `tp_<prefix>_<secret>`; only its SHA-256 is stored. The caller of a key is cached for less than a
second, so that revocation and expiry take effect within a second in every process.
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

_CACHED_SECONDS = 0.8
_CACHED_CALLERS = 4096
_TOUCH_MS = 60_000  # `lastUsedAt` is exact to a minute; a write for each request would cost too much
_ALPHABET = string.ascii_letters + string.digits
_MISSING = 'Bearer realm="tradepost"'
_INVALID = 'Bearer realm="tradepost", error="invalid_token"'


class NewKey(NamedTuple):
    """A key just after its creation, the only time that its secret is known."""

    key: str
    prefix: str
    hash: str


def new_key() -> NewKey:
    """A random key with a secret of 190 bits."""
    prefix = "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(8))
    secret = "".join(secrets.choice(_ALPHABET) for _ in range(32))
    key = f"tp_{prefix}_{secret}"
    return NewKey(key, prefix, hashlib.sha256(key.encode()).hexdigest())


class Authenticator:
    """Identifies callers by their `Authorization` header (RFC 6750)."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._cached: dict[bytes, tuple[float, Caller]] = {}  # by digest of the header, each with its end
        self._touched_ms: dict[str, int] = {}
        self._touching: set[asyncio.Task[None]] = set()

    def caller(self, authorization: bytes | None) -> Caller | Awaitable[Caller]:
        """The caller who sends this header: at once if cached, otherwise to be awaited.

        Raises `Unauthenticated` without a valid key, `Unavailable` if the database cannot be reached.
        """
        if authorization is None:
            message = "The request carries no API key"
            raise Unauthenticated(message, challenge=_MISSING)
        digest = hashlib.sha256(authorization).digest()
        cached = self._cached.get(digest)
        if cached is not None and cached[0] > time.monotonic():
            return cached[1]
        return self._authenticate(authorization, digest)

    async def finish(self) -> None:
        """Waits until the last uses of keys have been written."""
        await asyncio.gather(*self._touching)

    async def _authenticate(self, authorization: bytes, digest: bytes) -> Caller:
        caller = await self._look_up(authorization)
        if len(self._cached) >= _CACHED_CALLERS:
            self._cached.clear()
        self._cached[digest] = (time.monotonic() + _CACHED_SECONDS, caller)
        return caller

    async def _look_up(self, authorization: bytes) -> Caller:
        scheme, _, token = authorization.partition(b" ")
        token = token.strip(b" ")
        if scheme.lower() != b"bearer" or not token.startswith(b"tp_"):
            message = 'The Authorization header must be "Bearer tp_…"'
            raise Unauthenticated(message, challenge=_INVALID)
        hashed = hashlib.sha256(token).hexdigest()
        row = await self._database.reading().row(api_keys.BY_HASH, hash=hashed)
        now_ms = self._clock.now_ms()
        if (
            row is None
            or not hmac.compare_digest(row[1], hashed)
            or row[5] is not None
            or _expired(row[4], now_ms)
        ):
            message = "The API key is unknown, expired or revoked"
            raise Unauthenticated(message, challenge=_INVALID)
        self._note_use(row[0], row[6], now_ms)
        scopes = granted(msgspec.json.decode(row[2], type=list[str]))
        return Caller(key_id=row[0], scopes=scopes, user_id=row[3], token=token, expires_at=row[4])

    def _note_use(self, key_id: str, last_used_at: str | None, now_ms: int) -> None:
        known_ms = self._touched_ms.get(key_id, 0 if last_used_at is None else parse_instant(last_used_at))
        if now_ms - known_ms < _TOUCH_MS:
            return
        self._touched_ms[key_id] = now_ms
        task = asyncio.create_task(self._touch(key_id, instant(now_ms)))
        self._touching.add(task)
        task.add_done_callback(self._touching.discard)

    async def _touch(self, key_id: str, used_at: str) -> None:
        async def touch(tx: Writing) -> None:
            await tx.run(api_keys.TOUCH, key_id=key_id, now=used_at)

        try:
            await self._database.write(touch)
        except Problem:
            _log.warning("could not record the use of key %s", key_id)


def _expired(expires_at: str | None, now_ms: int) -> bool:
    return expires_at is not None and parse_instant(expires_at) <= now_ms
