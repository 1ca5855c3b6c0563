"""The health of endpoints: since when one has done nothing but fail, and when that disables it.

Failures count together as long as no success and no long quiet lies between them. Quiet says nothing about a
receiver: nothing was sent.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tradepost.clock import instant
from tradepost.storage.database import Writing
from tradepost.storage.statements import webhook_endpoints
from tradepost.webhooks.attempt import AttemptOutcome, Receiver

_log = logging.getLogger("tradepost.webhooks")

_LATEST_RETRY = 1.2  # times the delay that the schedule says: a retry comes no later
_NOTES = 100  # at most so many times until it is disabled, it is noted that an endpoint still fails

Noted = Mapping[str, bool]  # by the id of an endpoint, whether it fails


@dataclass
class Health:
    """Notes failures and successes.

    `disable_ms` is how long an endpoint may do nothing but fail, `retry_ms` the longest delay of a retry.
    """

    disable_ms: int
    retry_ms: float
    _failing: set[str] = field(default_factory=set)  # endpoints last noted as failing

    async def write(self, tx: Writing, outcomes: Iterable[AttemptOutcome], now_ms: int) -> Noted:
        """Writes what outcomes say of their endpoints; what was noted is for `committed`."""
        noted: dict[str, bool] = {}
        for outcome in outcomes:
            receiver = outcome.claimed.receiver
            failing = noted.get(receiver.id, receiver.id in self._failing)
            if outcome.delivered:
                if receiver.failing_since is not None or failing:
                    await tx.run(webhook_endpoints.WORKING, at_id=receiver.id)
                    noted[receiver.id] = False
            elif outcome.requests and not noted.get(receiver.id):
                await self._failed(tx, receiver, now_ms, after_success=receiver.id in noted)
                noted[receiver.id] = True
        return noted

    def committed(self, noted: Noted) -> None:
        """Takes note that what was written is committed."""
        for endpoint_id, failing in noted.items():
            (self._failing.add if failing else self._failing.discard)(endpoint_id)

    async def _failed(self, tx: Writing, receiver: Receiver, now_ms: int, *, after_success: bool) -> None:
        """Notes a failure; `after_success` says that the endpoint worked just before."""
        since, last = receiver.failing_since, receiver.failed_at or receiver.failing_since
        quiet_since = instant(now_ms - self._quiet_ms)
        if since is None or last is None or last < quiet_since or after_success:
            begins = {"now": instant(now_ms), "quiet_since": quiet_since}
            await tx.run(webhook_endpoints.FAILING, at_id=receiver.id, **begins)
            return
        if last < instant(now_ms - self.disable_ms // _NOTES):
            await tx.run(webhook_endpoints.STILL_FAILING, at_id=receiver.id, now=instant(now_ms))
        before = instant(now_ms - self.disable_ms)
        if since <= before:
            await self._disable(tx, receiver.id, since, before, now_ms)

    @property
    def _quiet_ms(self) -> int:
        """After so long without a failure, earlier failures no longer count."""
        return max(self.disable_ms // 2, int(_LATEST_RETRY * self.retry_ms))

    async def _disable(self, tx: Writing, endpoint_id: str, since: str, before: str, now_ms: int) -> None:
        reason = f"Nothing but failures since {since}."
        disabled = {"at_id": endpoint_id, "before": before, "reason": reason, "now": instant(now_ms)}
        if await tx.run(webhook_endpoints.DISABLE, **disabled):
            await tx.run(webhook_endpoints.UNSUBSCRIBE, at_endpoint_id=endpoint_id)
            _log.warning("webhook endpoint %s is disabled: nothing but failures since %s", endpoint_id, since)
