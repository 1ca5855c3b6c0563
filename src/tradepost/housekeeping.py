"""Housekeeping: what is kept for a time is forgotten after it, a bounded piece at a time."""

import asyncio
import logging

from tradepost.clock import Clock, instant
from tradepost.domain import ids
from tradepost.metrics import Metrics
from tradepost.problems import Problem
from tradepost.storage.database import Database, Writing
from tradepost.storage.statement import Statement
from tradepost.storage.statements import events, idempotency_keys

_log = logging.getLogger("tradepost.housekeeping")

_DAY_MS = 24 * 3600 * 1000
_ROUND_SECONDS = 60
_PIECE = 1000  # rows a purge statement removes at most


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
            await self.purge()
            for _ in range(_ROUND_SECONDS):
                self._metrics.share()
                await asyncio.sleep(1)

    async def purge(self) -> None:
        """Forgets what is past its time."""
        now = self._clock.now()
        try:
            await self._purge(idempotency_keys.PURGE, now=instant(now))
            await self._purge(events.PURGE, before=ids.floor(now - self._retention_ms))
        except Problem as problem:
            _log.warning("nothing was purged this time: %s", problem.detail)

    async def _purge(self, statement: Statement, **given: str) -> None:
        async def piece(tx: Writing) -> int:
            return await tx.run(statement, **given)

        while await self._database.write(piece) == _PIECE:
            pass
