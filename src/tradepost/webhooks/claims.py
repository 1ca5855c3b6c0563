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
from tradepost.webhooks.attempt import Claimed, Secret, Target
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
        targets = self._targets(held)
        if not targets:
            return [], free
        rows = await tx.rows(webhook_deliveries.CANDIDATES, lanes=list(targets), now=instant(now))
        picked = _picked(rows)[:room]
        ids = [candidate.id for candidate, _ in picked]
        if ids:
            until = instant(now + self._lease_ms)
            await tx.run(webhook_deliveries.LEASE, ids=ids, lease=lease, until=until)
        claimed = [self._claimed(each, event, targets, lease) for each, event in picked]
        return claimed, free

    def _targets(self, held: Iterable[Row]) -> dict[str, Target]:
        rows: dict[str, list[Row]] = defaultdict(list)
        for row in held:
            rows[row[0]].append(row)
        found = {endpoint_id: self._target(mine) for endpoint_id, mine in rows.items()}
        return {endpoint_id: target for endpoint_id, target in found.items() if target is not None}

    def _target(self, rows: list[Row]) -> Target | None:
        """An endpoint with its secrets; None if they cannot be opened, which is to hold up no other."""
        endpoint_id, url, content_type, failing_since, *_ = rows[0]
        secrets = {row[5]: self._secret(row[4], row[6]) for row in rows}
        current = secrets.get("CURRENT")
        if current is None:
            return None
        return Target(endpoint_id, url, content_type, failing_since, current, secrets.get("RETIRING"))

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
        self, each: Candidate, event: Event | None, targets: dict[str, Target], lease: str
    ) -> Claimed:
        target = targets[each.endpoint_id]
        if each.event_id is None:
            event = self._ping(each)
        return Claimed(each.id, lease, target, event, each.number, each.attempts, each.due)

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
