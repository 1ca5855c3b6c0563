"""Rate limits: a token bucket for each key, or for each address where there is no key.

The fields are those of draft-ietf-httpapi-ratelimit-headers. In process by default; with Redis all processes
draw from the same buckets, and should Redis fail, each process falls back to its own.
"""

import logging
import math
import time
from collections.abc import Awaitable
from typing import Any, NamedTuple, Protocol

_log = logging.getLogger("tradepost.access")

_BUCKETS_KEPT = 50_000


class Limit(NamedTuple):
    """So many requests in so many seconds."""

    requests: int
    seconds: int


class Verdict(NamedTuple):
    """Whether a request may pass, what is left, and the seconds until the bucket is full or enough again."""

    allowed: bool
    remaining: int
    reset: int


class RateLimits(Protocol):
    """Buckets that are drawn from."""

    limit: Limit

    def take(self, who: str, cost: float = 1) -> Verdict | Awaitable[Verdict]:
        """Draws `cost`, at once or to be awaited; nothing is drawn from a bucket that holds less."""

    async def give_back(self, who: str, cost: float = 1) -> None:
        """Undoes a draw, for an answer that is free."""


class InProcess:
    """Buckets in this process alone."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self._rate = limit.requests / limit.seconds
        self._buckets: dict[str, list[float]] = {}

    def take(self, who: str, cost: float = 1) -> Verdict:
        """See `RateLimits`."""
        now = time.monotonic()
        bucket = self._buckets.get(who)
        if bucket is None:
            bucket = self._new(who, now)
        full = self.limit.requests
        held = min(full, bucket[0] + (now - bucket[1]) * self._rate)
        allowed = held >= cost
        if allowed:
            held -= cost
        bucket[0], bucket[1] = held, now
        missing = full - held if allowed else cost - held
        return Verdict(allowed, int(held), math.ceil(missing / self._rate))

    async def give_back(self, who: str, cost: float = 1) -> None:
        bucket = self._buckets.get(who)
        if bucket is not None:
            bucket[0] = min(self.limit.requests, bucket[0] + cost)

    def _new(self, who: str, now: float) -> list[float]:
        if len(self._buckets) >= _BUCKETS_KEPT:
            self._forget_full(now)
        bucket = self._buckets[who] = [float(self.limit.requests), now]
        return bucket

    def _forget_full(self, now: float) -> None:
        """A full bucket is as good as none; if all are in use, the oldest go."""
        full = self.limit.requests
        kept = {who: b for who, b in self._buckets.items() if b[0] + (now - b[1]) * self._rate < full}
        self._buckets = dict(list(kept.items())[-_BUCKETS_KEPT // 2 :])


# Draws in one step: refill by the server's own clock, compare, write back with an expiry.
_DRAW = """
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


class Shared:
    """Buckets in Redis, shared by all processes."""

    def __init__(self, limit: Limit, url: str) -> None:
        # Loaded only where it is configured.
        from redis.asyncio import Redis  # noqa: PLC0415

        self.limit = limit
        self._rate = limit.requests / limit.seconds
        self._own = InProcess(limit)
        self._redis: Any = Redis.from_url(url, socket_timeout=0.25, socket_connect_timeout=0.25)
        self._draw = self._redis.register_script(_DRAW)
        self._retry_at = 0.0

    async def take(self, who: str, cost: float = 1) -> Verdict:
        drawn = await self._drawn(who, cost)
        if drawn is None:
            return self._own.take(who, cost)
        allowed, held = bool(drawn[0]), float(drawn[1])
        missing = self.limit.requests - held if allowed else cost - held
        return Verdict(allowed, int(held), math.ceil(missing / self._rate))

    async def give_back(self, who: str, cost: float = 1) -> None:
        if await self._drawn(who, -cost) is None:
            await self._own.give_back(who, cost)

    async def _drawn(self, who: str, cost: float) -> list[Any] | None:
        if time.monotonic() < self._retry_at:
            return None
        try:
            drawn: list[Any] = await self._draw(
                keys=[f"tradepost:rate:{who}"], args=[self.limit.requests, self._rate, cost]
            )
        except Exception as error:  # noqa: BLE001 (whatever ails Redis, requests go on)
            _log.warning("Redis does not answer (%s); limits are this process's own for a second", error)
            self._retry_at = time.monotonic() + 1
            return None
        return drawn
