"""Rate limits: a token bucket for each key, or for each address where there is no key.

The figures are those of draft-ietf-httpapi-ratelimit-headers. Buckets are in the process by default; with
Redis, all processes share the same buckets, and if Redis fails, each process falls back to its own.
"""

import logging
import math
import time
from collections.abc import Awaitable
from typing import Any, NamedTuple, Protocol

_log = logging.getLogger("tradepost.access")

_MAX_BUCKETS = 50_000


class Limit(NamedTuple):
    """A number of requests in a number of seconds."""

    requests: int
    seconds: int


class Verdict(NamedTuple):
    """Whether a request is allowed, and how many remain.

    `reset` is in seconds: until the bucket is full again or, if not allowed, until it holds enough.
    """

    allowed: bool
    remaining: int
    reset: int


class RateLimits(Protocol):
    """Token buckets, one for each client: a key or an address."""

    limit: Limit

    def take(self, client: str, cost: float = 1) -> Verdict | Awaitable[Verdict]:
        """Takes `cost` tokens, at once or to be awaited; takes none from a bucket that holds fewer."""

    async def give_back(self, client: str, cost: float = 1) -> None:
        """Returns `cost` tokens, for a response that does not count."""


class ProcessLimits:
    """Buckets of this process."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self._rate = limit.requests / limit.seconds
        self._buckets: dict[str, list[float]] = {}

    def take(self, client: str, cost: float = 1) -> Verdict:
        """See `RateLimits`."""
        now = time.monotonic()
        bucket = self._buckets.get(client)
        if bucket is None:
            bucket = self._new(client, now)
        full = self.limit.requests
        tokens = min(full, bucket[0] + (now - bucket[1]) * self._rate)
        allowed = tokens >= cost
        if allowed:
            tokens -= cost
        bucket[0], bucket[1] = tokens, now
        missing = full - tokens if allowed else cost - tokens
        return Verdict(allowed, int(tokens), math.ceil(missing / self._rate))

    async def give_back(self, client: str, cost: float = 1) -> None:
        bucket = self._buckets.get(client)
        if bucket is not None:
            bucket[0] = min(self.limit.requests, bucket[0] + cost)

    def _new(self, client: str, now: float) -> list[float]:
        if len(self._buckets) >= _MAX_BUCKETS:
            self._drop_full(now)
        bucket = self._buckets[client] = [float(self.limit.requests), now]
        return bucket

    def _drop_full(self, now: float) -> None:
        """Drops full buckets, which are the same as new ones; if too many remain, also the oldest."""
        full = self.limit.requests
        used = {client: b for client, b in self._buckets.items() if b[0] + (now - b[1]) * self._rate < full}
        self._buckets = dict(list(used.items())[-_MAX_BUCKETS // 2 :])


# One atomic step: refill by the server's own clock, compare, write back with an expiry.
# The names of the fields stay: processes of the version before may share the buckets.
_TAKE = """
local full, rate, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local bucket = redis.call('HMGET', KEYS[1], 'held', 'at')
local held = math.min(full, (tonumber(bucket[1]) or full) + (now - (tonumber(bucket[2]) or now)) * rate)
local allowed = held >= cost and 1 or 0
if allowed == 1 then held = math.min(full, held - cost) end
redis.call('HSET', KEYS[1], 'held', tostring(held), 'at', string.format('%.6f', now))
redis.call('EXPIRE', KEYS[1], math.ceil(full / rate) + 1)
return {allowed, tostring(held)}
"""


class RedisLimits:
    """Buckets in Redis, shared by all processes."""

    def __init__(self, limit: Limit, url: str) -> None:
        # Imported only if it is configured.
        from redis.asyncio import Redis  # noqa: PLC0415

        self.limit = limit
        self._rate = limit.requests / limit.seconds
        self._fallback = ProcessLimits(limit)
        self._redis: Any = Redis.from_url(url, socket_timeout=0.25, socket_connect_timeout=0.25)
        self._script = self._redis.register_script(_TAKE)
        self._retry_at = 0.0

    async def take(self, client: str, cost: float = 1) -> Verdict:
        result = await self._take(client, cost)
        if result is None:
            return self._fallback.take(client, cost)
        allowed, tokens = bool(result[0]), float(result[1])
        missing = self.limit.requests - tokens if allowed else cost - tokens
        return Verdict(allowed, int(tokens), math.ceil(missing / self._rate))

    async def give_back(self, client: str, cost: float = 1) -> None:
        if await self._take(client, -cost) is None:
            await self._fallback.give_back(client, cost)

    async def _take(self, client: str, cost: float) -> list[Any] | None:
        """Whether the tokens were taken and how many are left; None if Redis cannot be reached."""
        if time.monotonic() < self._retry_at:
            return None
        try:
            result: list[Any] = await self._script(
                keys=[f"tradepost:rate:{client}"], args=[self.limit.requests, self._rate, cost]
            )
        except Exception as error:  # noqa: BLE001 (any failure of Redis must not fail requests)
            _log.warning("Redis does not respond (%s); each process limits on its own for a second", error)
            self._retry_at = time.monotonic() + 1
            return None
        return result
