"""The worker: takes due deliveries, sends them, and writes down the results; any number of them side by side.

One turn writes the results of the attempts that have ended and claims what is due, in one transaction, so a
busy worker commits once for many deliveries. Wake-ups from the database are hints: the worker looks once a
second without them, so a lost one costs time and nothing else. What a killed worker had claimed is claimed by
another; what cannot be written down is sent again. Nothing is lost, and an id tells what came twice.
"""

import asyncio
import logging
from collections import Counter
from contextlib import suppress

from tradepost.clock import parse_instant
from tradepost.metrics import DeliveryFigures
from tradepost.perform import Performer
from tradepost.storage.database import Writing
from tradepost.storage.statements import webhook_deliveries
from tradepost.webhooks.attempt import Claimed, Poster, attempt
from tradepost.webhooks.claims import NOTHING, Claim, Claims
from tradepost.webhooks.fairness import EndpointQueues, FairScheduler
from tradepost.webhooks.health import Noted
from tradepost.webhooks.leases import Leases
from tradepost.webhooks.results import DeliveryResult, Results

_log = logging.getLogger("tradepost.webhooks")

_CAPACITY = 512  # deliveries of a process that are in flight at once
_LOOK_SECONDS = 1.0
_PACE_SECONDS = 0.001  # between two turns: the attempts that end in between are written down together
_CONTENDED_SECONDS = 0.01  # until another look at an endpoint that another worker had locked
_PAUSE_SECONDS = 0.1  # after a failure, doubled
_LONGEST_PAUSE_SECONDS = 5.0


class Worker:
    """Delivers what is due."""

    def __init__(
        self, performer: Performer, poster: Poster, claims: Claims, results: Results, figures: DeliveryFigures
    ) -> None:
        self._database = performer.database
        self._clock = performer.clock
        self._poster = poster
        self._claims = claims
        self._results = results
        self._figures = figures
        self._leases = Leases()
        self._scheduler = FairScheduler(_CAPACITY, webhook_deliveries.LANES_AT_ONCE)
        self._wake_up = asyncio.Event()
        self._ended: list[DeliveryResult] = []  # whose results are not written yet
        self._attempts: set[asyncio.Task[None]] = set()
        self._stopping = False

    async def run(self) -> None:
        """Delivers until it is stopped."""
        self._database.watch(self._wake_up.set)
        pause = _PAUSE_SECONDS
        while not self._stopping:
            self._wake_up.clear()
            try:
                seconds = await self.turn()
                pause = _PAUSE_SECONDS
            except Exception:  # noqa: BLE001 (whatever it is, it is tried again)
                if pause == _PAUSE_SECONDS:
                    _log.warning("deliveries cannot be claimed; the worker tries again", exc_info=True)
                seconds, pause = pause, min(2 * pause, _LONGEST_PAUSE_SECONDS)
                self._wake_up.clear()
            await asyncio.sleep(_PACE_SECONDS)
            await self._wait(seconds)
        await self._finish()  # with what the last turn claimed
        await self._database.unwatch(self._wake_up.set)

    async def stop(self) -> None:
        """Claims nothing more; waits until nothing is in flight and writes the results down."""
        self._stopping = True
        self._wake_up.set()
        await self._finish()

    async def _finish(self) -> None:
        await self.settle()
        with suppress(Exception):  # what is not written down is claimed again when its lease has ended
            await self._write([])

    async def settle(self) -> None:
        """Waits until nothing is in flight."""
        while self._attempts:
            await asyncio.wait(self._attempts)

    async def turn(self) -> float:
        """Writes the results down and claims what is due; seconds until the next turn, at most 1.

        Raises what the database raises; the results are then written by a later turn.
        """
        if self._scheduler.is_full:
            await self._write([])
            return _LOOK_SECONDS
        now_ms = self._clock.now_ms()
        after = self._scheduler.resume_after
        rows = await self._database.reading().rows(webhook_deliveries.LANES, after=after)
        freed = Counter(each.outcome.claimed.receiver.id for each in self._ended)
        due = self._scheduler.look([EndpointQueues(*row) for row in rows], freed, now_ms)
        contended = await self._write(due) if due or self._ended else False
        longest = _CONTENDED_SECONDS if contended else _LOOK_SECONDS
        return min(longest, self._scheduler.wait_ms(now_ms) / 1000)

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight and no result waits to be written down."""
        return not self._attempts and not self._ended

    async def _write(self, due: list[str]) -> bool:
        """Writes results and claims in one transaction; whether another worker had locked an endpoint."""
        ended, self._ended = self._ended, []
        now_ms, lease = self._clock.now_ms(), self._leases.new()

        async def work(tx: Writing) -> tuple[Noted, Claim]:
            noted = await self._results.write(tx, ended, now_ms)
            if not due:
                return noted, NOTHING
            return noted, await self._claims.claim(tx, due, self._scheduler.pick, now_ms, lease)

        try:
            noted, claim = await self._database.write(work)
        except BaseException:
            self._ended = ended + self._ended
            raise
        self._results.committed(ended, noted)
        self._scheduler.claimed(claim.pick)
        for each in claim.deliveries:
            self._start(each, now_ms)
        return claim.contended

    def _start(self, claimed: Claimed, now_ms: int) -> None:
        self._figures.started(now_ms - parse_instant(claimed.due_at))
        receiver = claimed.receiver
        failing = self._scheduler.started(receiver.id, receiver.failing_since, now_ms)
        task = asyncio.get_running_loop().create_task(self._attempt(claimed, failing=failing))
        self._attempts.add(task)
        task.add_done_callback(self._attempts.discard)

    async def _attempt(self, claimed: Claimed, *, failing: bool) -> None:
        delivered = False
        try:
            outcome = await attempt(self._poster, self._clock.now_ms, claimed)
            for each in outcome.requests:
                self._figures.attempted(each.response_status, each.duration_ms)
            delivered = outcome.delivered
            self._ended.append(self._results.judge(outcome))
        except Exception:  # noqa: BLE001 (whatever it is, it is tried again)
            _log.exception("delivery %s failed here; it is tried again when its lease has ended", claimed.id)
        finally:
            self._scheduler.ended(claimed.receiver.id, failing=failing, delivered=delivered)
            self._wake_up.set()

    async def _wait(self, seconds: float) -> None:
        """Waits for a wake-up, but no longer than this."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake_up.wait()
