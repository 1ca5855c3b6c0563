"""Housekeeping: data past its retention time is deleted, a bounded number of rows at a time."""

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
_BATCH = 1000  # rows that one transaction deletes at most


class Housekeeping:
    """Purges old rows, and shares the metrics of this process with others."""

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
            except Exception:  # noqa: BLE001 (the next round tries again)
                _log.exception("the purge failed and will be retried")
            for _ in range(_ROUND_SECONDS):
                self._share()
                await asyncio.sleep(1)

    def _share(self) -> None:
        try:
            self._metrics.share()
        except OSError as error:
            _log.warning("metrics cannot be shared with other processes: %s", error)

    async def purge(self) -> None:
        """Deletes all rows past their retention time; a database out of reach is logged only."""
        now_ms = self._clock.now_ms()
        try:
            await self._purge(idempotency_keys.PURGE, now=instant(now_ms))
            await self._purge_deliveries(now_ms)
            await self._purge_events(ids.floor(now_ms - self._retention_ms))
        except Problem as problem:
            _log.warning("the purge failed and will be retried: %s", problem.detail)

    async def _purge_deliveries(self, now_ms: int) -> None:
        """Abandons deliveries to deleted endpoints, and deletes deliveries that ended long enough ago."""
        await self._purge(webhook_deliveries.ABANDON, now=instant(now_ms))
        end_ms = now_ms - self._retention_ms
        for status in ("DELIVERED", "ABANDONED"):
            parameters = {"status": status, "before": ids.floor(end_ms), "then": instant(end_ms)}
            await self._purge(webhook_deliveries.PURGE, **parameters)

    async def _purge_events(self, before: str) -> None:
        """Deletes events in batches, but none that is still to be delivered."""
        after: str | None = ""
        while after is not None:
            after = await self._purge_batch(after, before)

    async def _purge_batch(self, after: str, before: str) -> str | None:
        async def batch(tx: Writing) -> str | None:
            last = await tx.row(events.BATCH_END, after=after, before=before, limit=_BATCH)
            if last is None or last[0] is None:
                return None
            await tx.run(events.PURGE, after=after, upto=last[0])
            return str(last[0])

        return await self._database.write(batch)

    async def _purge(self, statement: Statement, **parameters: str) -> None:
        async def batch(tx: Writing) -> int:
            return await tx.run(statement, **parameters, limit=_BATCH)

        while await self._database.write(batch) == _BATCH:
            pass
