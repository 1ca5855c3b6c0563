"""Housekeeping: what is kept for a time is forgotten after it, a bounded piece at a time."""

import asyncio
import logging

from tradepost.clock import Clock, instant
from tradepost.domain import ids
from tradepost.metrics import Metrics
from tradepost.problems import Problem
from tradepost.storage.database import Database, Writing
from tradepost.storage.statement import Statement
from tradepost.storage.statements import events, idempotency_keys, webhook_deliveries

_log = logging.getLogger("tradepost.housekeeping")

_DAY_MS = 24 * 3600 * 1000
_ROUND_SECONDS = 60
_PIECE = 1000  # rows that one transaction forgets at most


class Housekeeping:
    """Purges, and the sharing of this process's figures."""

    def __init__(self, database: Database, clock: Clock, metrics: Metrics, retention_days: int) -> None:
        self._database = database
        self._clock = clock
        self._metrics = metrics
        self._retention_ms = retention_days * _DAY_MS

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            try:
                await self.purge()
            except Exception:  # noqa: BLE001 (whatever it is, it is tried again)
                _log.exception("nothing was purged this time")
            for _ in range(_ROUND_SECONDS):
                self._share()
                await asyncio.sleep(1)

    def _share(self) -> None:
        try:
            self._metrics.share()
        except OSError as error:
            _log.warning("figures cannot be shared: %s", error)

    async def purge(self) -> None:
        """Forgets what is past its time."""
        now = self._clock.now()
        try:
            await self._purge(idempotency_keys.PURGE, now=instant(now))
            await self._purge_deliveries(now)
            await self._purge_events(ids.floor(now - self._retention_ms))
        except Problem as problem:
            _log.warning("nothing was purged this time: %s", problem.detail)

    async def _purge_deliveries(self, now: int) -> None:
        """What goes to nobody any more is abandoned; what has been over for long enough is forgotten."""
        await self._purge(webhook_deliveries.ABANDON, now=instant(now))
        before = now - self._retention_ms
        for status in ("DELIVERED", "ABANDONED"):
            given = {"status": status, "before": ids.floor(before), "then": instant(before)}
            await self._purge(webhook_deliveries.PURGE, **given)

    async def _purge_events(self, before: str) -> None:
        """Piece by piece past those that are still to be delivered: what is due is never dropped."""
        after: str | None = ""
        while after is not None:
            after = await self._purge_piece(after, before)

    async def _purge_piece(self, after: str, before: str) -> str | None:
        async def piece(tx: Writing) -> str | None:
            last = await tx.row(events.PIECE, after=after, before=before, limit=_PIECE)
            if last is None or last[0] is None:
                return None
            await tx.run(events.PURGE, after=after, upto=last[0])
            return str(last[0])

        return await self._database.write(piece)

    async def _purge(self, statement: Statement, **given: str) -> None:
        async def piece(tx: Writing) -> int:
            return await tx.run(statement, **given, limit=_PIECE)

        while await self._database.write(piece) == _PIECE:
            pass
