"""Results: what attempts came to, written down together in one transaction.

A delivery is over, or due again; an endpoint works or fails (`health.py`). A retiring secret is retired once
deliveries are confirmed without it (specification 5.4): three in a row, or ten if one needed it since the
rotation, because then some of the receiver's machines may not have switched yet.
"""

import logging
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from tradepost.clock import instant
from tradepost.metrics import DeliveryFigures
from tradepost.storage.database import Writing
from tradepost.storage.statements import webhook_deliveries, webhook_secrets
from tradepost.webhooks.attempt import AttemptOutcome
from tradepost.webhooks.health import Health, Noted
from tradepost.webhooks.retry_schedule import RetrySchedule

_log = logging.getLogger("tradepost.webhooks")

_CONFIRMATIONS = 3
_CONFIRMATIONS_IF_NEEDED = 10

_encode = msgspec.json.Encoder().encode


class DeliveryResult(NamedTuple):
    """The outcome of an attempt, and when the next one is due (ms since 1970), if there is one."""

    outcome: AttemptOutcome
    next_attempt_ms: int | None


@dataclass
class Results:
    """Judges outcomes and writes them down."""

    schedule: RetrySchedule
    health: Health
    figures: DeliveryFigures

    def judge(self, outcome: AttemptOutcome) -> DeliveryResult:
        """Whether there is another attempt, and when."""
        if outcome.delivered or outcome.claimed.event is None:
            return DeliveryResult(outcome, None)
        retry_after = outcome.reply.retry_after if outcome.reply else None
        number = outcome.claimed.number
        return DeliveryResult(outcome, self.schedule.after(number, outcome.ended_ms, retry_after))

    async def write(self, tx: Writing, results: list[DeliveryResult], now_ms: int) -> Noted:
        """Writes what became of the deliveries, endpoints and secrets; what was noted is for `committed`.

        Goes through the endpoints in one order, so that no two workers wait for each other.
        """
        if not results:
            return {}
        results = sorted(results, key=lambda each: each.outcome.claimed.receiver.id)
        await tx.many(webhook_deliveries.CONCLUDE, [_row(each, now_ms) for each in results])
        noted = await self.health.write(tx, (outcome for outcome, _ in results), now_ms)
        for each in results:
            if each.outcome.claimed.receiver.retiring is not None and each.outcome.delivered:
                await _rotate(tx, each.outcome, now_ms)
        return noted

    def committed(self, results: list[DeliveryResult], noted: Noted) -> None:
        """Takes note that what was written is committed."""
        self.health.committed(noted)
        for each in results:
            if each.next_attempt_ms is None and not each.outcome.delivered:
                self.figures.abandoned += 1
                claimed = each.outcome.claimed
                _log.warning("delivery %s to endpoint %s is abandoned", claimed.id, claimed.receiver.id)


def _row(result: DeliveryResult, now_ms: int) -> dict[str, Any]:
    outcome, next_ms = result
    claimed = outcome.claimed
    status = "DELIVERED" if outcome.delivered else "ABANDONED" if next_ms is None else "PENDING"
    return {
        "at_id": claimed.id,
        "at_lease": claimed.lease,
        "at_attempt": claimed.number,
        "new_status": status,
        "new_attempts": _joined(claimed.attempts, _encode(outcome.requests).decode()),
        "new_attempt": claimed.number + (next_ms is not None),
        "new_next_attempt_at": None if next_ms is None else instant(next_ms),
        "new_updated_at": instant(now_ms),
    }


def _joined(before: str, new: str) -> str:
    """Two JSON arrays as one."""
    if new == "[]":
        return before
    return new if before == "[]" else f"{before[:-1]},{new[1:]}"


async def _rotate(tx: Writing, outcome: AttemptOutcome, now_ms: int) -> None:
    retiring = outcome.claimed.receiver.retiring
    assert retiring is not None
    if outcome.confirmed_by == retiring.id:
        await tx.run(webhook_secrets.NEEDED, at_id=retiring.id)
        return
    await tx.run(webhook_secrets.CONFIRMED, at_id=retiring.id)
    enough = {"enough": _CONFIRMATIONS, "enough_again": _CONFIRMATIONS_IF_NEEDED}
    await tx.run(webhook_secrets.RETIRE_CONFIRMED, at_id=retiring.id, now=instant(now_ms), **enough)
