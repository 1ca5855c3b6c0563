"""The worker: takes what is due, sends it, writes down what came of it; any number of them side by side.

One turn writes the conclusions of the attempts that have ended and claims what is due, in one transaction,
so that a busy worker commits once for many deliveries. Hints of the database wake it; without any it looks
once a second, so that a lost one costs time and nothing else. What it has claimed when it is killed is
claimed by another; what it cannot write down is sent again. Nothing is lost, and an id tells what came twice.
"""

import asyncio
import logging
import math
from collections import Counter
from contextlib import suppress

from tradepost.clock import Clock, instant, parse_instant
from tradepost.metrics import DeliveryFigures
from tradepost.storage.database import Database, Row, Writing
from tradepost.storage.statements import webhook_deliveries
from tradepost.webhooks.attempt import Claimed, Outcome, Poster, attempt
from tradepost.webhooks.claims import Claims
from tradepost.webhooks.conclusions import Concluded, Conclusions
from tradepost.webhooks.health import Failing
from tradepost.webhooks.leases import Leases
from tradepost.webhooks.patience import STEP_MS, Patience, only_fails
from tradepost.webhooks.slots import SLOTS

_log = logging.getLogger("tradepost.webhooks")

_ROOM = 512  # deliveries of a process that are out at once; half of them to endpoints that only fail
_LOOK_SECONDS = 1.0
_PACE_SECONDS = 0.001  # between two turns: what ends meanwhile is written down together
_HELD_SECONDS = 0.01  # until an endpoint that another worker held is looked at again
_PAUSE_SECONDS = 0.1  # after a failure, doubled
_LONGEST_PAUSE_SECONDS = 5.0


class Worker:
    """Delivers what is due."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        poster: Poster,
        claims: Claims,
        conclusions: Conclusions,
        figures: DeliveryFigures,
    ) -> None:
        self._database = database
        self._clock = clock
        self._poster = poster
        self._claims = claims
        self._conclusions = conclusions
        self._figures = figures
        self._leases = Leases()
        self._patience = Patience(_ROOM // 2)
        self._wanted = asyncio.Event()
        self._ended: list[Concluded] = []
        self._attempts: set[asyncio.Task[None]] = set()
        self._behind = ""  # the endpoint after which the next look begins
        self._soonest = math.inf  # of the endpoints seen since a look last began with the first (ms)
        self._stopping = False

    async def run(self) -> None:
        """Delivers until it is stopped."""
        self._database.watch(self._wanted.set)
        pause = _PAUSE_SECONDS
        while not self._stopping:
            self._wanted.clear()
            try:
                seconds = await self.turn()
                pause = _PAUSE_SECONDS
            except Exception:  # noqa: BLE001 (whatever it is, it is tried again)
                if pause == _PAUSE_SECONDS:
                    _log.warning("deliveries cannot be claimed; it is tried again", exc_info=True)
                seconds, pause = pause, min(2 * pause, _LONGEST_PAUSE_SECONDS)
                self._wanted.clear()
            await asyncio.sleep(_PACE_SECONDS)
            await self._hint(seconds)
        await self._finish()  # what the last turn claimed, too
        await self._database.unwatch(self._wanted.set)

    async def stop(self) -> None:
        """Claims nothing more; waits for what is out and writes it down."""
        self._stopping = True
        self._wanted.set()
        await self._finish()

    async def _finish(self) -> None:
        await self.settle()
        with suppress(Exception):  # what is not written down is claimed again once its lease is over
            await self._write([])

    async def settle(self) -> None:
        """Waits until nothing is out."""
        while self._attempts:
            await asyncio.wait(self._attempts)

    async def turn(self) -> float:
        """One look: writes down what has ended, claims what is due; seconds until more is due, at most 1."""
        if len(self._attempts) >= _ROOM:  # it goes on with the endpoint it has come to once there is room
            await self._write([])
            return _LOOK_SECONDS
        now = self._clock.now()
        lanes = await self._database.reading().rows(webhook_deliveries.LANES, after=self._behind)
        due, soonest = self._due(lanes, now)
        self._soonest = min(soonest, self._soonest if self._behind else math.inf)
        self._behind = lanes[-1][0] if len(lanes) == webhook_deliveries.LANES_AT_ONCE else ""
        held = await self._write(due) if due or self._ended else True
        if self._behind:
            return 0.0
        seconds = min(_LOOK_SECONDS, max(0.0, (self._soonest - now) / 1000))
        return seconds if held else min(seconds, _HELD_SECONDS)

    @property
    def idle(self) -> bool:
        """Whether nothing is out and nothing waits to be written down."""
        return not self._attempts and not self._ended

    def _due(self, lanes: list[Row], now: int) -> tuple[list[str], float]:
        """Endpoints with a free slot and something due; and when the next of the others is due (ms)."""
        moment = instant(now)
        due: list[str] = []
        failing: list[str] = []
        ahead: list[str] = []
        ended = Counter(each.outcome.claimed.receiver.id for each in self._ended)
        for endpoint_id, *queues, out, fails_since in lanes:
            if fails_since is not None and out - ended[endpoint_id] < SLOTS:
                waiting = [at for at in queues if at is not None]
                if any(at <= moment for at in waiting):
                    (failing if only_fails(fails_since, now) else due).append(endpoint_id)
                ahead += [at for at in waiting if at > moment]
        turns = self._patience.turns(failing, now, to_the_end=len(lanes) < webhook_deliveries.LANES_AT_ONCE)
        if len(turns) < len(failing):
            ahead.append(instant(now + STEP_MS))
        return due + turns, parse_instant(min(ahead)) if ahead else math.inf

    async def _write(self, due: list[str]) -> bool:
        """One transaction: conclusions and claims. Whether every endpoint that is due could be held."""
        ended, self._ended = self._ended, []
        room = max(0, _ROOM - len(self._attempts))
        now, lease = self._clock.now(), self._leases.new()

        async def work(tx: Writing) -> tuple[Failing, list[Claimed], bool]:
            failing = await self._conclusions.write(tx, ended, now)
            if not due or not room:
                return failing, [], True
            return failing, *await self._claims.claim(tx, due, room, now, lease)

        try:
            failing, claimed, held = await self._database.write(work)
        except BaseException:
            self._ended = ended + self._ended
            raise
        self._conclusions.committed(ended, failing)
        if claimed and len(claimed) == room:
            self._behind = claimed[-1].receiver.id  # the others are next once there is room again
        self._patience.forget(now)
        for each in claimed:
            self._start(each, now)
        return held

    def _start(self, claimed: Claimed, now: int) -> None:
        self._figures.late(now - parse_instant(claimed.due))
        failing = only_fails(claimed.receiver.failing_since, now)
        if failing:
            self._patience.tried(claimed.receiver.id, now)
        task = asyncio.get_running_loop().create_task(self._attempt(claimed, failing=failing))
        self._attempts.add(task)
        task.add_done_callback(self._attempts.discard)

    async def _attempt(self, claimed: Claimed, *, failing: bool) -> None:
        delivered = False
        try:
            outcome = await attempt(self._poster, self._clock.now, claimed)
            self._count(outcome)
            delivered = outcome.delivered
            self._ended.append(self._conclusions.judge(outcome))
        except Exception:  # noqa: BLE001 (whatever it is, it is tried again)
            _log.exception("delivery %s failed here; it is tried again once its lease is over", claimed.id)
        finally:
            if failing:
                self._patience.ended(claimed.receiver.id, delivered=delivered)
            self._wanted.set()

    def _count(self, outcome: Outcome) -> None:
        for each in outcome.requests:
            self._figures.attempted(each.response_status, each.duration_ms)

    async def _hint(self, seconds: float) -> None:
        """Waits for a reason to look, but no longer than this."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wanted.wait()
