"""The door that every HTTP surface has: who calls, and whether they are within their rate."""

from tradepost.access.api_keys import Authenticator
from tradepost.access.caller import Caller
from tradepost.access.rate_limits import Limit, RateLimits, Verdict
from tradepost.http.request import Request
from tradepost.problems import RateLimited, Unauthenticated


class Door:
    """Lets requests in."""

    def __init__(self, authenticator: Authenticator, limits: RateLimits) -> None:
        self._authenticator = authenticator
        self._limits = limits

    async def let_in(self, request: Request, cost: float = 1) -> Caller:
        """Who calls, within the rate: a key's own, or the address's for whoever shows no valid key."""
        try:
            found = self._authenticator.caller(request.headers.get(b"authorization"))
            request.caller = caller = found if isinstance(found, Caller) else await found
        except Unauthenticated:
            request.bucket = request.client
            await self.draw(request, 1)
            raise
        request.bucket = caller.key_id
        if cost:
            await self.draw(request, cost)
        return caller

    async def caller(self, authorization: bytes | None) -> Caller:
        """Who shows this; raises `Unauthenticated`."""
        found = self._authenticator.caller(authorization)
        return found if isinstance(found, Caller) else await found

    async def draw(self, request: Request, cost: float) -> None:
        """Draws from the request's bucket; raises `RateLimited` and draws nothing if it holds less.

        What costs more than a whole bucket costs that.
        """
        drawn = self._limits.take(request.bucket, min(cost, self._limits.limit.requests))
        request.verdict = verdict = drawn if isinstance(drawn, Verdict) else await drawn
        if not verdict.allowed:
            raise self._limited(verdict)

    async def draw_for(self, bucket: str, cost: float) -> None:
        """The same for what is no request of its own."""
        drawn = self._limits.take(bucket, min(cost, self._limits.limit.requests))
        verdict = drawn if isinstance(drawn, Verdict) else await drawn
        if not verdict.allowed:
            raise self._limited(verdict)

    async def give_back(self, request: Request, cost: float = 1) -> None:
        """Undoes a draw: a 304 is free."""
        await self._limits.give_back(request.bucket, cost)
        if request.verdict is not None:
            remaining = min(self._limits.limit.requests, request.verdict.remaining + int(cost))
            request.verdict = request.verdict._replace(remaining=remaining)

    def _limited(self, verdict: Verdict) -> RateLimited:
        limit = self._limits.limit
        message = f"More than {limit.requests} requests in {limit.seconds} s"
        return RateLimited(message, retry_after=verdict.reset)


def rate_headers(limit: Limit, verdict: Verdict) -> list[tuple[bytes, bytes]]:
    """`RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers)."""
    return [
        (b"ratelimit-policy", b'"default";q=%d;w=%d' % limit),
        (b"ratelimit", b'"default";r=%d;t=%d' % (verdict.remaining, verdict.reset)),
    ]
