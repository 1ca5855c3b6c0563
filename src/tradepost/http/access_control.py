"""Access control of every HTTP surface: who calls, and whether they are within their rate."""

from typing import NamedTuple

from tradepost.access.api_keys import Doorkeeper
from tradepost.access.caller import Caller, Permission
from tradepost.access.rate_limits import Limit, RateLimits, Verdict
from tradepost.http.request import Request
from tradepost.problems import Problem, RateLimited, Unauthenticated


class Admission(NamedTuple):
    """The outcome for a request: its caller, the bucket it draws from, and what is left in that.

    A request that is not let in has a `refusal`: `Unauthenticated` or `RateLimited`.
    """

    caller: Caller | None
    bucket: str
    verdict: Verdict | None = None
    refusal: Problem | None = None

    def admitted(self, permission: Permission | None = None) -> Caller:
        """The caller; raises the refusal, or `Forbidden` without the permission."""
        if self.refusal is not None:
            raise self.refusal
        if self.caller is None:
            raise AssertionError(self)
        if permission is not None:
            permission.check(self.caller)
        return self.caller


class AccessControl:
    """Authenticates callers and draws from their rate: a key's own, or the address's without a valid key."""

    def __init__(self, doorkeeper: Doorkeeper, limits: RateLimits) -> None:
        self._doorkeeper = doorkeeper
        self._limits = limits

    async def admit(self, request: Request) -> Admission:
        """Lets a request in, or not. It draws one request from the bucket; raises nothing."""
        try:
            caller = await self.caller(request.headers.get(b"authorization"))
        except Unauthenticated as refusal:
            drawn = await self.draw(Admission(None, request.client), 1)
            return drawn if drawn.refusal else drawn._replace(refusal=refusal)
        return await self.draw(Admission(caller, caller.key_id), 1)

    async def caller(self, authorization: bytes | None) -> Caller:
        """The caller with this `Authorization`; raises `Unauthenticated`."""
        caller = self._doorkeeper.caller(authorization)
        return caller if isinstance(caller, Caller) else await caller

    async def draw(self, admission: Admission, cost: float) -> Admission:
        """Draws from the bucket. If it holds less, nothing is drawn and the refusal is `RateLimited`.

        A cost above a whole bucket counts as a whole bucket.
        """
        limit = self._limits.limit
        drawn = self._limits.take(admission.bucket, min(cost, limit.requests))
        verdict = drawn if isinstance(drawn, Verdict) else await drawn
        refusal = None
        if not verdict.allowed:
            message = f"More than {limit.requests} requests in {limit.seconds} s"
            refusal = RateLimited(message, retry_after=verdict.reset)
        return Admission(admission.caller, admission.bucket, verdict, refusal)

    async def give_back(self, admission: Admission, cost: float = 1) -> Admission:
        """Undoes a draw, because a 304 is free."""
        await self._limits.give_back(admission.bucket, cost)
        if admission.verdict is None:
            return admission
        remaining = min(self._limits.limit.requests, admission.verdict.remaining + int(cost))
        return admission._replace(verdict=admission.verdict._replace(remaining=remaining))


def rate_headers(limit: Limit, verdict: Verdict) -> list[tuple[bytes, bytes]]:
    """`RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers)."""
    return [
        (b"ratelimit-policy", b'"default";q=%d;w=%d' % limit),
        (b"ratelimit", b'"default";r=%d;t=%d' % (verdict.remaining, verdict.reset)),
    ]
