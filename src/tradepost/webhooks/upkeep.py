"""Upkeep: what deliveries need now and then besides being delivered.

Claims of workers that did not come back are released. Redeliveries become deliveries, piece by piece. The
backlog is measured: how many deliveries wait, and since when.
"""

import asyncio
import logging

from tradepost.access.caller import Caller
from tradepost.actions import webhook_redeliveries
from tradepost.actions.change import Change
from tradepost.actions.webhook_redeliveries import Piece
from tradepost.clock import instant, parse_instant
from tradepost.metrics import DeliveryFigures
from tradepost.perform import Performer
from tradepost.problems import Problem
from tradepost.storage.database import Row
from tradepost.storage.statements import webhook_deliveries
from tradepost.webhooks.leases import Leases

_log = logging.getLogger("tradepost.webhooks")

_ROUND_SECONDS = 1.0
_ROUNDS_PER_MEASUREMENT = 30
_PIECE = 500  # deliveries made in one transaction
_PIECES = 20  # in one round
_SERVICE = Caller(key_id="webhooks", scopes=frozenset())


class Upkeep:
    """What one process does for the deliveries of all."""

    def __init__(self, performer: Performer, figures: DeliveryFigures) -> None:
        self._performer = performer
        self._database = performer.database
        self._clock = performer.clock
        self._figures = figures
        self._leases = Leases()
        self._resume_after = ""  # the redelivery that had the last turn

    async def run(self) -> None:
        """Runs until it is cancelled."""
        rounds = 0
        while True:
            try:
                await self.release()
                await self.redeliver()
                if rounds % _ROUNDS_PER_MEASUREMENT == 0:
                    await self.measure()
            except Problem as problem:
                _log.warning("the upkeep of deliveries failed; it is tried again: %s", problem.detail)
            except Exception:  # noqa: BLE001 (whatever it is, it is tried again)
                _log.exception("the upkeep of deliveries failed; it is tried again")
            rounds += 1
            await asyncio.sleep(_ROUND_SECONDS)

    async def release(self) -> None:
        """Releases what is claimed under leases that have ended, or by processes that no longer run.

        Raises what the database raises, as do `redeliver` and `measure`.
        """
        since: str | None = ""
        while since is not None:
            leased = await self._database.reading().rows(webhook_deliveries.LEASES, since=since)
            await self._release(leased)
            is_full = len(leased) == webhook_deliveries.LEASES_AT_ONCE and leased[-1][0] != since
            since = leased[-1][0] if is_full else None  # the leases of that endpoint, few, are seen twice

    async def redeliver(self) -> None:
        """Makes deliveries of redeliveries, one piece of each in turn.

        It stops when none can be made at present, or after so many that other upkeep is not kept waiting.
        """
        idle = False  # since a round began
        for _ in range(_PIECES):
            piece = await self._redeliver_piece()
            if piece is not None:
                self._resume_after, idle = piece.id, idle and not piece.moved
            elif idle:
                break
            else:
                self._resume_after, idle = "", True

    async def measure(self) -> None:
        """Measures the backlog."""
        [(pending, due_at)] = await self._database.reading().rows(webhook_deliveries.BACKLOG)
        self._figures.set_backlog(
            pending, None if due_at is None else parse_instant(due_at), self._clock.now_ms()
        )

    async def _release(self, leased: list[Row]) -> None:
        now_at = instant(self._clock.now_ms())
        ended = {lease for *_, lease, until in leased if until < now_at}
        running = {lease for *_, lease, _ in leased} - ended
        to_release = ended.union(self._leases.of_dead_processes(running))
        if to_release:
            ids = [delivery_id for _, delivery_id, lease, _ in leased if lease in to_release]
            leases = sorted(to_release)
            released = await self._database.write(
                lambda tx: tx.run(webhook_deliveries.RELEASE, ids=ids, leases=leases)
            )
            self._figures.expired += released
            self._database.wake()

    async def _redeliver_piece(self) -> Piece | None:
        if await self._database.reading().row(webhook_deliveries.ANY_REDELIVERY) is None:
            return None

        async def action(change: Change) -> Piece | None:
            return await webhook_redeliveries.expand(change, self._resume_after, _PIECE)

        return (await self._performer.perform(_SERVICE, None, action, source="")).result
