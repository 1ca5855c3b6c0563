"""Claims: due deliveries are taken under a lease that is committed before anything is sent.

If a worker is killed in between, its claim was in vain: the lease ends, and another worker makes the same
attempt. Endpoints are locked while their deliveries are picked, so all workers together keep to the slots.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from tradepost.access.sealing import Sealer
from tradepost.clock import instant
from tradepost.events.outbox import Emitter, ping
from tradepost.problems import Unavailable
from tradepost.storage.database import Row, Writing
from tradepost.storage.statements import webhook_deliveries, webhook_endpoints
from tradepost.webhooks.attempt import Claimed, Receiver, Secret
from tradepost.webhooks.envelope import EventRow
from tradepost.webhooks.fairness import Candidate, Pick

_log = logging.getLogger("tradepost.webhooks")

Picker = Callable[[Iterable[Candidate]], Pick]

_SECRETS_CACHED = 10_000


class Claim(NamedTuple):
    """What was picked and leased; `contended` says that another worker had locked one of the endpoints."""

    deliveries: list[Claimed]
    pick: Pick
    contended: bool


NOTHING = Claim([], Pick([], None), contended=False)


class Claims:
    """Claims deliveries under leases of `lease_ms`."""

    def __init__(self, emitter: Emitter, sealer: Sealer, lease_ms: int) -> None:
        self._emitter = emitter
        self._lease_ms = lease_ms
        self._opened = lru_cache(_SECRETS_CACHED)(sealer.open)
        self._unreadable: set[str] = set()  # secrets that were sealed with a key we do not have

    async def claim(self, tx: Writing, ids: list[str], pick: Picker, now_ms: int, lease: str) -> Claim:
        """Claims what `pick` says of the waiting deliveries of these endpoints."""
        locked = await tx.rows(webhook_endpoints.LOCK, ids=ids)
        contended = len({row[0] for row in locked}) < len(ids)
        receivers = self._receivers(locked)
        if not receivers:
            return NOTHING._replace(contended=contended)
        rows = await tx.rows(webhook_deliveries.CANDIDATES, lanes=list(receivers), now=instant(now_ms))
        picked = pick(Candidate._make((*row[:5], row[5:])) for row in rows)
        leased = await self._lease(tx, [each.delivery_id for each in picked.deliveries], now_ms, lease)
        candidates = [each for each in picked.deliveries if each.delivery_id in leased]
        return Claim([self._claimed(each, receivers, lease) for each in candidates], picked, contended)

    async def _lease(self, tx: Writing, ids: list[str], now_ms: int, lease: str) -> set[str]:
        """Which of the deliveries are leased: not those whose attempt was written down a moment ago."""
        if not ids:
            return set()
        until = {"now": instant(now_ms), "until": instant(now_ms + self._lease_ms)}
        return {row[0] for row in await tx.rows(webhook_deliveries.LEASE, ids=ids, lease=lease, **until)}

    def _receivers(self, locked: Iterable[Row]) -> dict[str, Receiver]:
        rows: dict[str, list[Row]] = defaultdict(list)
        for row in locked:
            rows[row[0]].append(row)
        receivers = [self._receiver(each) for each in rows.values()]
        return {each.id: each for each in receivers if each is not None}

    def _receiver(self, rows: list[Row]) -> Receiver | None:
        """An endpoint with its secrets; None if its current one cannot be opened, which delays no other."""
        secrets = {status: self._secret(secret_id, sealed) for *_, secret_id, status, sealed in rows}
        current = secrets.get("CURRENT")
        if current is None:
            return None
        return Receiver._make((*rows[0][:5], current, secrets.get("RETIRING")))

    def _secret(self, secret_id: str, sealed: str) -> Secret | None:
        """A secret in the clear; None, with one line in the log, if our key does not open it."""
        if sealed in self._unreadable:
            return None
        try:
            return Secret(secret_id, self._opened(sealed))
        except Unavailable:
            _log.error("webhook secret %s cannot be opened: rotate it, or restore its key", secret_id)
            self._unreadable.add(sealed)
            return None

    def _claimed(self, candidate: Candidate, receivers: dict[str, Receiver], lease: str) -> Claimed:
        delivery_id, endpoint_id, *_ = candidate
        number, attempts, due_at, event_id, _, created_at, source, *row = candidate.details
        event = None if row[0] is None else EventRow(*row)
        if event_id is None:
            event = EventRow(**ping(self._emitter, delivery_id, endpoint_id, source or "", created_at))
        return Claimed(delivery_id, lease, receivers[endpoint_id], event, number, attempts, due_at)
