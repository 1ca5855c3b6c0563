"""Conclusions: what attempts came to, written down together in one transaction.

A delivery is over, or due again. An endpoint works, fails, or has failed for so long that it is disabled. A
secret that retires is done with once deliveries are confirmed without it (specification 5.4): three in a
row, or ten if it was needed meanwhile, for then some of the receiver's machines may not have switched yet.
"""

import logging
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from tradepost.clock import instant
from tradepost.metrics import DeliveryFigures
from tradepost.storage.database import Writing
from tradepost.storage.statements import webhook_deliveries, webhook_endpoints, webhook_secrets
from tradepost.webhooks.attempt import Outcome
from tradepost.webhooks.schedule import Schedule

_log = logging.getLogger("tradepost.webhooks")

_ENOUGH = 3
_ENOUGH_AGAIN = 10

_encode = msgspec.json.Encoder().encode


class Concluded(NamedTuple):
    """An outcome, and when the next attempt is due (ms), if there is one."""

    outcome: Outcome
    again: int | None


@dataclass
class Conclusions:
    """How outcomes are judged; `disable_ms` is how long an endpoint may do nothing but fail."""

    schedule: Schedule
    disable_ms: int
    figures: DeliveryFigures
    _failed: set[str] = field(default_factory=set)  # endpoints of which we have noted so, and nothing since

    def judge(self, outcome: Outcome) -> Concluded:
        """When it goes on, if it does."""
        retry_after = outcome.reply.retry_after if outcome.reply else None
        number = outcome.claimed.number
        over = outcome.delivered or outcome.claimed.event is None
        again = None if over else self.schedule.after(number, outcome.ended, retry_after)
        return Concluded(outcome, again)

    async def write(self, tx: Writing, concluded: list[Concluded], now: int) -> None:
        """Writes what became of the deliveries, of their endpoints and of the secrets.

        Endpoint by endpoint in one order, so that no two workers ever wait for each other.
        """
        if not concluded:
            return
        concluded = sorted(concluded, key=lambda each: each.outcome.claimed.target.id)
        await tx.many(webhook_deliveries.CONCLUDE, [_row(each, now) for each in concluded])
        await self._endpoints(tx, concluded, now)
        for each in concluded:
            if each.outcome.claimed.target.retiring is not None and each.outcome.delivered:
                await _rotate(tx, each.outcome, now)

    def count(self, concluded: list[Concluded]) -> None:
        """Counts what was written."""
        for each in concluded:
            if each.again is None and not each.outcome.delivered:
                self.figures.abandoned += 1
                claimed = each.outcome.claimed
                _log.warning("delivery %s to endpoint %s is abandoned", claimed.id, claimed.target.id)

    async def _endpoints(self, tx: Writing, concluded: list[Concluded], now: int) -> None:
        failing: dict[str, str | None] = {}
        for outcome, _ in concluded:
            target = outcome.claimed.target
            since = failing.setdefault(target.id, target.failing_since)
            if outcome.delivered:
                if since is not None or target.id in self._failed:
                    await tx.run(webhook_endpoints.WORKING, at_id=target.id)
                    self._failed.discard(target.id)
                failing[target.id] = None
            elif since is None and outcome.requests:
                failing[target.id] = instant(now)
                await tx.run(webhook_endpoints.FAILING, at_id=target.id, since=instant(now))
                self._failed.add(target.id)
            elif since is not None:
                await self._disable(tx, target.id, since, now)

    async def _disable(self, tx: Writing, endpoint_id: str, since: str, now: int) -> None:
        before = instant(now - self.disable_ms)
        if since > before:
            return
        reason = f"Nothing but failures since {since}."
        given = {"at_id": endpoint_id, "before": before, "reason": reason, "now": instant(now)}
        if await tx.run(webhook_endpoints.DISABLE, **given):
            await tx.run(webhook_endpoints.UNSUBSCRIBE, at_endpoint_id=endpoint_id)
            _log.warning("webhook endpoint %s is disabled: nothing but failures since %s", endpoint_id, since)


def _row(concluded: Concluded, now: int) -> dict[str, Any]:
    outcome, again = concluded
    claimed = outcome.claimed
    status = "DELIVERED" if outcome.delivered else "ABANDONED" if again is None else "PENDING"
    return {
        "at_id": claimed.id,
        "at_lease": claimed.lease,
        "at_attempt": claimed.number,
        "new_status": status,
        "new_attempts": _appended(claimed.attempts, _encode(outcome.requests).decode()),
        "new_attempt": claimed.number + (again is not None),
        "new_next_attempt_at": None if again is None else instant(again),
        "new_updated_at": instant(now),
    }


def _appended(before: str, new: str) -> str:
    """Two JSON arrays as one."""
    return new if before == "[]" else f"{before[:-1]},{new[1:]}"


async def _rotate(tx: Writing, outcome: Outcome, now: int) -> None:
    target = outcome.claimed.target
    assert target.retiring is not None
    if outcome.confirmed_by == target.retiring.id:
        await tx.run(webhook_secrets.NEEDED, at_id=target.retiring.id)
        return
    await tx.run(webhook_secrets.CONFIRMED, at_id=target.retiring.id)
    enough = {"enough": _ENOUGH, "enough_again": _ENOUGH_AGAIN}
    await tx.run(webhook_secrets.RETIRE_CONFIRMED, at_id=target.retiring.id, now=instant(now), **enough)
