"""Claims: what is due is taken under a lease that is committed before anything is sent.

Whoever is killed in between has claimed in vain: the lease ends and the same attempt is made by another. An
endpoint is held while its deliveries are chosen, so that workers together never exceed its slots.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from tradepost.access.sealing import Sealer
from tradepost.clock import instant
from tradepost.events.outbox import Emitter, ping
from tradepost.problems import Unavailable
from tradepost.storage.database import Row, Writing
from tradepost.storage.statements import webhook_deliveries, webhook_endpoints
from tradepost.webhooks.attempt import Claimed, Receiver, Secret
from tradepost.webhooks.envelope import Event
from tradepost.webhooks.slots import chosen

_log = logging.getLogger("tradepost.webhooks")

_OPENED_KEPT = 10_000


class Candidate(NamedTuple):
    """A delivery that waits, and how many of its endpoint are out."""

    id: str
    endpoint_id: str
    later: int
    out_first: int
    out_later: int
    number: int
    attempts: str
    due: str
    event_id: str | None
    event_type: str
    created_at: str
    source: str | None


_WIDTH = len(Candidate._fields)


class Claims:
    """Claims deliveries; `lease_ms` is for how long."""

    def __init__(self, emitter: Emitter, sealer: Sealer, lease_ms: int) -> None:
        self._emitter = emitter
        self._lease_ms = lease_ms
        self._opened = lru_cache(_OPENED_KEPT)(sealer.open)
        self._shut: set[str] = set()  # secrets that were sealed with a key we have not

    async def claim(
        self, tx: Writing, endpoint_ids: Sequence[str], room: int, now: int, lease: str
    ) -> tuple[list[Claimed], bool]:
        """What is claimed of these endpoints, up to `room`; and whether all of them could be held."""
        held = await tx.rows(webhook_endpoints.HOLD, ids=list(endpoint_ids))
        free = len({row[0] for row in held}) == len(endpoint_ids)
        receivers = self._receivers(held)
        if not receivers:
            return [], free
        rows = await tx.rows(webhook_deliveries.CANDIDATES, lanes=list(receivers), now=instant(now))
        picked = _picked(rows)[:room]
        taken = await self._take(tx, [candidate.id for candidate, _ in picked], now, lease)
        claimed = [self._claimed(each, event, receivers, lease) for each, event in picked if each.id in taken]
        return claimed, free

    async def _take(self, tx: Writing, ids: list[str], now: int, lease: str) -> set[str]:
        """Those of deliveries that are still to be had: one that was put back may have been concluded."""
        if not ids:
            return set()
        until = {"now": instant(now), "until": instant(now + self._lease_ms)}
        return {row[0] for row in await tx.rows(webhook_deliveries.LEASE, ids=ids, lease=lease, **until)}

    def _receivers(self, held: Iterable[Row]) -> dict[str, Receiver]:
        rows: dict[str, list[Row]] = defaultdict(list)
        for row in held:
            rows[row[0]].append(row)
        found = {endpoint_id: self._receiver(mine) for endpoint_id, mine in rows.items()}
        return {endpoint_id: receiver for endpoint_id, receiver in found.items() if receiver is not None}

    def _receiver(self, rows: list[Row]) -> Receiver | None:
        """An endpoint with its secrets; None if they cannot be opened, which is to hold up no other."""
        endpoint_id, url, content_type, failing_since, failed_at, *_ = rows[0]
        secrets = {status: self._secret(secret_id, sealed) for *_, secret_id, status, sealed in rows}
        current = secrets.get("CURRENT")
        if current is None:
            return None
        return Receiver(
            endpoint_id, url, content_type, failing_since, failed_at, current, secrets.get("RETIRING")
        )

    def _secret(self, secret_id: str, sealed: str) -> Secret | None:
        """A secret in the clear; None, once with a line in the log, if our key does not open it."""
        if sealed in self._shut:
            return None
        try:
            return Secret(secret_id, self._opened(sealed))
        except Unavailable:
            _log.error("webhook secret %s cannot be opened: rotate it, or bring its key back", secret_id)
            self._shut.add(sealed)
            return None

    def _claimed(
        self, each: Candidate, event: Event | None, receivers: dict[str, Receiver], lease: str
    ) -> Claimed:
        receiver = receivers[each.endpoint_id]
        if each.event_id is None:
            event = self._ping(each)
        return Claimed(each.id, lease, receiver, event, each.number, each.attempts, each.due)

    def _ping(self, each: Candidate) -> Event:
        row = ping(self._emitter, each.id, each.endpoint_id, each.source or "", each.created_at)
        return Event(**row)


def _picked(rows: Iterable[Row]) -> list[tuple[Candidate, Event | None]]:
    """What goes out now of what waits, endpoint by endpoint in the order of their ids."""
    queues: dict[str, tuple[list[Row], list[Row], list[Row]]] = defaultdict(lambda: ([], [], []))
    for row in rows:
        queues[row[1]][row[2]].append(row)
    return [
        (Candidate(*row[:_WIDTH]), None if row[_WIDTH] is None else Event(*row[_WIDTH:]))
        for _, (first, retries, again) in sorted(queues.items())
        for row in chosen(first, retries + again, *(first or retries or again)[0][3:5])
    ]
