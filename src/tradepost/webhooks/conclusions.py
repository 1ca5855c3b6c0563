"""Conclusions: what attempts came to, written down together in one transaction.

A delivery is over, or due again; an endpoint works or fails (`health.py`). A secret that retires is done with
once deliveries are confirmed without it (specification 5.4): three in a row, or ten if it was needed
meanwhile, for then some of the receiver's machines may not have switched yet.
"""

import logging
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from tradepost.clock import instant
from tradepost.metrics import DeliveryFigures
from tradepost.storage.database import Writing
from tradepost.storage.statements import webhook_deliveries, webhook_secrets
from tradepost.webhooks.attempt import Outcome
from tradepost.webhooks.health import Failing, Health
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
    """How outcomes are judged."""

    schedule: Schedule
    health: Health
    figures: DeliveryFigures

    def judge(self, outcome: Outcome) -> Concluded:
        """When it goes on, if it does."""
        retry_after = outcome.reply.retry_after if outcome.reply else None
        number = outcome.claimed.number
        over = outcome.delivered or outcome.claimed.event is None
        again = None if over else self.schedule.after(number, outcome.ended, retry_after)
        return Concluded(outcome, again)

    async def write(self, tx: Writing, concluded: list[Concluded], now: int) -> Failing:
        """Writes what became of the deliveries, of their endpoints and of the secrets; for `committed`.

        Endpoint by endpoint in one order, so that no two workers ever wait for each other.
        """
        if not concluded:
            return {}
        concluded = sorted(concluded, key=lambda each: each.outcome.claimed.receiver.id)
        await tx.many(webhook_deliveries.CONCLUDE, [_row(each, now) for each in concluded])
        failing = await self.health.write(tx, (outcome for outcome, _ in concluded), now)
        for each in concluded:
            if each.outcome.claimed.receiver.retiring is not None and each.outcome.delivered:
                await _rotate(tx, each.outcome, now)
        return failing

    def committed(self, concluded: list[Concluded], failing: Failing) -> None:
        """What was written stands."""
        self.health.committed(failing)
        for each in concluded:
            if each.again is None and not each.outcome.delivered:
                self.figures.abandoned += 1
                claimed = each.outcome.claimed
                _log.warning("delivery %s to endpoint %s is abandoned", claimed.id, claimed.receiver.id)


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
    if new == "[]":
        return before
    return new if before == "[]" else f"{before[:-1]},{new[1:]}"


async def _rotate(tx: Writing, outcome: Outcome, now: int) -> None:
    receiver = outcome.claimed.receiver
    assert receiver.retiring is not None
    if outcome.confirmed_by == receiver.retiring.id:
        await tx.run(webhook_secrets.NEEDED, at_id=receiver.retiring.id)
        return
    await tx.run(webhook_secrets.CONFIRMED, at_id=receiver.retiring.id)
    enough = {"enough": _ENOUGH, "enough_again": _ENOUGH_AGAIN}
    await tx.run(webhook_secrets.RETIRE_CONFIRMED, at_id=receiver.retiring.id, now=instant(now), **enough)
