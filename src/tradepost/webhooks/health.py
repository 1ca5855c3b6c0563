"""The health of endpoints: since when one has done nothing but fail, and when that is enough to disable it.

Failures count together as long as no success and no long quiet lies between them: time in which nothing was
sent says nothing of a receiver.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tradepost.clock import instant
from tradepost.storage.database import Writing
from tradepost.storage.statements import webhook_endpoints
from tradepost.webhooks.attempt import Outcome, Receiver

_log = logging.getLogger("tradepost.webhooks")

_LATE = 1.2  # times what the schedule says: a retry comes no later
_STEPS = 100  # how often until it is disabled it is noted at most that an endpoint still fails

Failing = Mapping[str, bool]


@dataclass
class Health:
    """Notes failures and successes.

    `disable_ms` is how long an endpoint may do nothing but fail; `retry_ms` the longest wait for a retry.
    """

    disable_ms: int
    retry_ms: float
    _failing: set[str] = field(default_factory=set)  # of which we have noted so, and nothing since

    async def write(self, tx: Writing, outcomes: Iterable[Outcome], now: int) -> Failing:
        """Writes what outcomes say of their endpoints; of which it noted that they fail, or do not."""
        noted: dict[str, bool] = {}
        for outcome in outcomes:
            receiver = outcome.claimed.receiver
            failing = noted.get(receiver.id, receiver.id in self._failing)
            if outcome.delivered:
                if receiver.failing_since is not None or failing:
                    await tx.run(webhook_endpoints.WORKING, at_id=receiver.id)
                    noted[receiver.id] = False
            elif outcome.requests and not noted.get(receiver.id):
                await self._failed(tx, receiver, now, anew=receiver.id in noted)
                noted[receiver.id] = True
        return noted

    def committed(self, noted: Failing) -> None:
        """What was noted stands."""
        for endpoint_id, failing in noted.items():
            (self._failing.add if failing else self._failing.discard)(endpoint_id)

    async def _failed(self, tx: Writing, receiver: Receiver, now: int, *, anew: bool) -> None:
        """Notes a failure; `anew` says that there was a success just before."""
        since, last = receiver.failing_since, receiver.failed_at or receiver.failing_since
        quiet_since = instant(now - self._quiet_ms)
        if since is None or last is None or last < quiet_since or anew:
            begins = {"now": instant(now), "quiet_since": quiet_since}
            await tx.run(webhook_endpoints.FAILING, at_id=receiver.id, **begins)
            return
        if last < instant(now - self.disable_ms // _STEPS):
            await tx.run(webhook_endpoints.STILL_FAILING, at_id=receiver.id, now=instant(now))
        before = instant(now - self.disable_ms)
        if since <= before:
            await self._disable(tx, receiver.id, since, before, now)

    @property
    def _quiet_ms(self) -> int:
        """Without a failure for so long, what failed before does not count any more."""
        return max(self.disable_ms // 2, int(_LATE * self.retry_ms))

    async def _disable(self, tx: Writing, endpoint_id: str, since: str, before: str, now: int) -> None:
        reason = f"Nothing but failures since {since}."
        given = {"at_id": endpoint_id, "before": before, "reason": reason, "now": instant(now)}
        if await tx.run(webhook_endpoints.DISABLE, **given):
            await tx.run(webhook_endpoints.UNSUBSCRIBE, at_endpoint_id=endpoint_id)
            _log.warning("webhook endpoint %s is disabled: nothing but failures since %s", endpoint_id, since)
