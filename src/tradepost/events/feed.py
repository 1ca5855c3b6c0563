"""The feed: whoever listens to a subject is told each event about it once, whichever process it is from.

One task follows the log while anybody listens. Hints of the database wake it; without any it looks once a
second, so that a lost one costs time and nothing else.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from tradepost.events import tail
from tradepost.events.tail import Moment, Position
from tradepost.problems import Unavailable
from tradepost.storage.database import Database, Row

_log = logging.getLogger("tradepost.events")

_PIECE = 500  # events read at once
_TURN = 500  # calls of listeners before others have their turn on the loop
_PACE_SECONDS = 0.005  # between two looks: what is committed meanwhile is read at once
_LOOK_SECONDS = 1.0
_HELD_UP_SECONDS = 0.01  # doubled up to the usual: a transaction that announces nothing ends without a hint
_PAUSE_SECONDS = 0.1  # after a failure, doubled
_LONGEST_PAUSE_SECONDS = 5.0


class Told(NamedTuple):
    """An event as it is told: `dev.tradepost.order.fulfilled`, `orders/<id>`, RFC 3339, the event's id."""

    type: str
    subject: str
    time: str
    id: str


Tell = Callable[[Told], None]


class Feed:
    """The tail of the log of a database, for those who listen in this process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listeners: dict[str, dict[Tell, Moment]] = {}
        self._joining: dict[asyncio.Future[None], tuple[str, Tell]] = {}
        self._position = Position()
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._calls = 0

    async def follow(self, subject: str, tell: Tell) -> None:
        """Has `tell` called with each event about `subject` that is committed from now on.

        On return that is certain. Events come once each, in the order of the log; none that was committed
        before the call. One committed during it may be among them, or be visible to whoever reads after the
        return. `tell` is not to block; if it raises, that is logged, and the next event is told all the same.
        The same `tell` follows a subject once, however often it asks. Waits while the database is out of
        reach; raises `Unavailable` if the feed is stopped.
        """
        if self._stopped:
            raise _ended()
        joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._joining[joined] = (subject, tell)
        self._wanted.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        try:
            await joined
        except asyncio.CancelledError:
            if self._joining.pop(joined, None) is None:
                self.leave(subject, tell)
            raise

    def leave(self, subject: str, tell: Tell) -> None:
        """Never calls `tell` about `subject` again; nothing if it does not follow it."""
        listeners = self._listeners.get(subject, {})
        listeners.pop(tell, None)
        if not listeners:
            self._listeners.pop(subject, None)
        if not self._listeners:
            self._wanted.set()

    async def stop(self) -> None:
        """Tells nobody anything any more."""
        self._stopped = True
        self._listeners.clear()
        for joined in self._joining:
            if not joined.done():
                joined.set_exception(_ended())
        self._joining.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        """While there are listeners, and for those who come while the watch is being ended."""
        noticed = self._wanted.set
        while self._joining:
            self._database.watch(noticed)
            try:
                await self._serve()
            finally:
                await self._database.unwatch(noticed)
        self._task = None

    async def _serve(self) -> None:
        pause, held_up = _PAUSE_SECONDS, _HELD_UP_SECONDS
        while self._joining or self._listeners:
            self._wanted.clear()
            try:
                await self._admit()
                news = await tail.after(self._database.reading(), self._position, _PIECE)
            except Exception:  # noqa: BLE001 (whatever it is, it is tried again)
                if pause == _PAUSE_SECONDS:
                    _log.warning("the log of events cannot be read; it is tried again", exc_info=True)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                continue
            await self._tell(news.events)
            pause = _PAUSE_SECONDS
            held_up = _HELD_UP_SECONDS if news.events else min(2 * held_up, _LOOK_SECONDS)
            await asyncio.sleep(_PACE_SECONDS)
            if len(news.events) < _PIECE:
                await self._hint(held_up if news.held_up else _LOOK_SECONDS)

    async def _hint(self, seconds: float) -> None:
        """Waits for a reason to look, but no longer than this."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wanted.wait()

    async def _admit(self) -> None:
        """Those who want to follow do so from now on; nothing is told meanwhile."""
        joining = list(self._joining)
        if not joining:
            return
        moment = await tail.now(self._database.reading())
        if not self._listeners:
            self._position = moment.start
        for joined in joining:
            if joined in self._joining:
                subject, tell = self._joining.pop(joined)
                self._listeners.setdefault(subject, {}).setdefault(tell, moment)
                if not joined.done():
                    joined.set_result(None)

    async def _tell(self, news: list[tuple[Position, Row]]) -> None:
        for position, (event_id, kind, subject, time) in news:
            listeners = self._listeners.get(subject)
            if listeners:
                await self._tell_all(listeners, position, Told(kind, subject, time, event_id))
            self._position = position

    async def _tell_all(self, listeners: dict[Tell, Moment], position: Position, told: Told) -> None:
        for tell, since in tuple(listeners.items()):
            if tell not in listeners or since.had(position):
                continue
            try:
                tell(told)
            except (Exception, asyncio.CancelledError):  # noqa: BLE001 (the listener's own affair)
                _log.exception("a listener to %s failed", told.subject)
            self._calls += 1
            if self._calls % _TURN == 0:
                await asyncio.sleep(0)


def _ended() -> Unavailable:
    return Unavailable("The service is being stopped")
