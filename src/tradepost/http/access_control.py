"""Access control of every HTTP surface: who calls, and whether they are within their rate."""

from msgspec import Struct
from msgspec.structs import replace

from tradepost.access.api_keys import Authenticator
from tradepost.access.caller import Caller, Permission
from tradepost.access.rate_limits import Limit, RateLimits, Verdict
from tradepost.http.request import Request
from tradepost.problems import Problem, RateLimited, Unauthenticated


class Admission(Struct, frozen=True):
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

    def __init__(self, authenticator: Authenticator, limits: RateLimits) -> None:
        self._authenticator = authenticator
        self._limits = limits

    async def admit(self, request: Request) -> Admission:
        """Lets a request in, or not. It draws one request from the bucket; raises nothing."""
        try:
            found = self._authenticator.caller(request.headers.get(b"authorization"))
            caller = found if isinstance(found, Caller) else await found
        except Unauthenticated as refusal:
            drawn = await self.draw(Admission(None, request.client), 1)
            return drawn if drawn.refusal else replace(drawn, refusal=refusal)
        taken = self._limits.take(caller.key_id, 1)
        verdict = taken if isinstance(taken, Verdict) else await taken
        return Admission(caller, caller.key_id, verdict, self._refusal(verdict))

    async def caller(self, authorization: bytes | None) -> Caller:
        """The caller with this `Authorization`; raises `Unauthenticated`."""
        caller = self._authenticator.caller(authorization)
        return caller if isinstance(caller, Caller) else await caller

    async def draw(self, admission: Admission, cost: float) -> Admission:
        """Draws from the bucket. If it holds less, nothing is drawn and the refusal is `RateLimited`.

        A cost above a whole bucket counts as a whole bucket.
        """
        taken = self._limits.take(admission.bucket, min(cost, self._limits.limit.requests))
        verdict = taken if isinstance(taken, Verdict) else await taken
        return Admission(admission.caller, admission.bucket, verdict, self._refusal(verdict))

    def _refusal(self, verdict: Verdict) -> RateLimited | None:
        if verdict.allowed:
            return None
        limit = self._limits.limit
        message = f"More than {limit.requests} requests in {limit.seconds} s"
        return RateLimited(message, retry_after=verdict.reset)

    async def give_back(self, admission: Admission, cost: float = 1) -> Admission:
        """Undoes a draw, because a 304 is free."""
        await self._limits.give_back(admission.bucket, cost)
        if admission.verdict is None:
            return admission
        remaining = min(self._limits.limit.requests, admission.verdict.remaining + int(cost))
        return replace(admission, verdict=admission.verdict._replace(remaining=remaining))


def rate_headers(limit: Limit, verdict: Verdict) -> list[tuple[bytes, bytes]]:
    """`RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers)."""
    return [
        (b"ratelimit-policy", b'"default";q=%d;w=%d' % limit),
        (b"ratelimit", b'"default";r=%d;t=%d' % (verdict.remaining, verdict.reset)),
    ]
