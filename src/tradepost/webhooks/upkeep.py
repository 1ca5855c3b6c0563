"""Upkeep: what deliveries need now and then, beside being delivered.

Claims of those who did not come back are put back. Redeliveries are made into deliveries, piece by piece.
How much waits, and since when, is measured.
"""

import asyncio
import logging

from tradepost.access.caller import Caller
from tradepost.access.idempotency import Answer
from tradepost.actions import webhook_redeliveries
from tradepost.actions.change import Change
from tradepost.actions.webhook_redeliveries import Piece
from tradepost.clock import instant, parse_instant
from tradepost.domain.webhook_redelivery import WebhookRedelivery
from tradepost.metrics import DeliveryFigures
from tradepost.perform import Performer
from tradepost.problems import Problem
from tradepost.storage.database import Row, Writing
from tradepost.storage.statement import Statement
from tradepost.storage.statements import webhook_deliveries
from tradepost.webhooks.leases import Leases

_log = logging.getLogger("tradepost.webhooks")

_EVERY_SECONDS = 1.0
_MEASURED_EVERY = 30  # rounds
_PIECE = 500  # deliveries made in one transaction
_PIECES = 20  # of them in a round
_SERVICE = Caller(key_id="webhooks", scopes=frozenset())


class Upkeep:
    """What one process does for the deliveries of all."""

    def __init__(self, performer: Performer, figures: DeliveryFigures) -> None:
        self._performer = performer
        self._database = performer.database
        self._clock = performer.clock
        self._figures = figures
        self._leases = Leases()
        self._behind = ""  # the redelivery that had its turn last

    async def run(self) -> None:
        """Runs until it is cancelled."""
        rounds = 0
        while True:
            try:
                await self.release()
                await self.redeliver()
                if rounds % _MEASURED_EVERY == 0:
                    await self.measure()
            except Problem as problem:
                _log.warning("no upkeep of deliveries this time: %s", problem.detail)
            except Exception:  # noqa: BLE001 (whatever it is, it is tried again)
                _log.exception("no upkeep of deliveries this time")
            rounds += 1
            await asyncio.sleep(_EVERY_SECONDS)

    async def release(self) -> None:
        """Puts back what is claimed under leases that are over, or by processes that are."""
        since: str | None = ""
        while since is not None:
            out = await self._database.reading().rows(webhook_deliveries.LEASES, since=since)
            await self._release(out)
            full = len(out) == webhook_deliveries.LEASES_AT_ONCE and out[-1][0] != since
            since = out[-1][0] if full else None  # an endpoint has few: what it has is seen twice

    async def redeliver(self) -> None:
        """Makes deliveries of redeliveries, a piece of each in turn: all that can be made now, or so many
        that other upkeep is not kept waiting."""
        idle = False  # since a round began
        for _ in range(_PIECES):
            piece = await self._redeliver_piece()
            if piece is not None:
                self._behind, idle = piece.id, idle and not piece.moved
            elif idle:
                break
            else:
                self._behind, idle = "", True

    async def measure(self) -> None:
        """Measures what waits."""
        row = await self._database.reading().rows(webhook_deliveries.BACKLOG)
        pending, due = row[0]
        self._figures.waits(pending, None if due is None else parse_instant(due), self._clock.now())

    async def _release(self, out: list[Row]) -> None:
        now = instant(self._clock.now())
        over = {lease for *_, lease, until in out if until < now}
        gone = over.union(self._leases.of_the_dead({lease for *_, lease, _ in out} - over))
        if gone:
            ids = [delivery_id for _, delivery_id, lease, _ in out if lease in gone]
            released = await self._run(webhook_deliveries.RELEASE, ids=ids, leases=sorted(gone))
            self._figures.expired += released
            self._database.wake()

    async def _redeliver_piece(self) -> Piece | None:
        if await self._database.reading().row(webhook_deliveries.ANY_REDELIVERY) is None:
            return None
        made: Piece | None = None

        async def action(change: Change) -> Answer:
            nonlocal made
            made = await webhook_redeliveries.expand(change, self._behind, _PIECE)
            return Answer(204, [], b"")

        await self._performer.perform(_SERVICE, action, record=WebhookRedelivery, source="")
        return made

    async def _run(self, statement: Statement, **given: object) -> int:
        async def work(tx: Writing) -> int:
            return await tx.run(statement, **given)

        return await self._database.write(work)
