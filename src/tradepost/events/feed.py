"""The feed: notifies the listeners of a subject of each event about it once, whichever process it is from.

One task follows the log while there are listeners. Wake-ups from the database are hints: the task looks once
a second without them, so a lost one costs time and nothing else.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from tradepost.events import tail
from tradepost.events.tail import LogSnapshot, Position
from tradepost.problems import Unavailable
from tradepost.storage.database import Database, Row

_log = logging.getLogger("tradepost.events")

_PAGE = 500  # events read at once
_CALLS = 500  # of listeners before others have their turn on the loop
_PACE_SECONDS = 0.005  # between two looks: the events committed in between are read together
_LOOK_SECONDS = 1.0
_HELD_UP_SECONDS = 0.01  # doubled up to a second: a transaction without events ends without a wake-up
_PAUSE_SECONDS = 0.1  # after a failure, doubled
_LONGEST_PAUSE_SECONDS = 5.0


class FeedEvent(NamedTuple):
    """An event for listeners: `dev.tradepost.order.fulfilled`, `orders/<id>`, RFC 3339, the event's id."""

    type: str
    subject: str
    time: str
    id: str


Notify = Callable[[FeedEvent], None]


class Feed:
    """The tail of a database's log, for the listeners of this process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listeners: dict[str, dict[Notify, LogSnapshot]] = {}
        self._joining: dict[asyncio.Future[None], tuple[str, Notify]] = {}
        self._position = Position()
        self._wake_up = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._calls = 0

    async def follow(self, subject: str, notify: Notify) -> None:
        """Calls `notify` with each event about `subject` that is committed after this has returned.

        Events come once each, in the order of the log; none that was committed before the call. One that is
        committed during the call may be among them, or else is visible to a read after the return. `notify`
        must not block; if it raises, that is logged, and the next event comes all the same. The same `notify`
        follows a subject once, however often it asks.

        Waits while the database is out of reach. Raises `Unavailable` if the feed is stopped.
        """
        if self._stopped:
            raise _ended()
        joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._joining[joined] = (subject, notify)
        self._wake_up.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        try:
            await joined
        except asyncio.CancelledError:
            if self._joining.pop(joined, None) is None:
                self.leave(subject, notify)
            raise

    def leave(self, subject: str, notify: Notify) -> None:
        """Never calls `notify` about `subject` again; does nothing if it does not follow it."""
        listeners = self._listeners.get(subject, {})
        listeners.pop(notify, None)
        if not listeners:
            self._listeners.pop(subject, None)
        if not self._listeners:
            self._wake_up.set()

    async def stop(self) -> None:
        """Notifies nobody any more; calls of `follow` that wait raise `Unavailable`."""
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
        """Follows the log while there are listeners, and for those that join while the watch is ending."""
        wake_up = self._wake_up.set
        while self._joining:
            self._database.watch(wake_up)
            try:
                await self._serve()
            finally:
                await self._database.unwatch(wake_up)
        self._task = None

    async def _serve(self) -> None:
        pause, held_up = _PAUSE_SECONDS, _HELD_UP_SECONDS
        while self._joining or self._listeners:
            self._wake_up.clear()
            try:
                await self._admit()
                new = await tail.after(self._database.reading(), self._position, _PAGE)
            except Exception:  # noqa: BLE001 (whatever it is, it is tried again)
                if pause == _PAUSE_SECONDS:
                    _log.warning("the event log cannot be read; the feed tries again", exc_info=True)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                continue
            await self._notify(new.events)
            pause = _PAUSE_SECONDS
            held_up = _HELD_UP_SECONDS if new.events else min(2 * held_up, _LOOK_SECONDS)
            await asyncio.sleep(_PACE_SECONDS)
            if len(new.events) < _PAGE:
                await self._wait(held_up if new.held_up else _LOOK_SECONDS)

    async def _wait(self, seconds: float) -> None:
        """Waits for a wake-up, but no longer than this."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake_up.wait()

    async def _admit(self) -> None:
        """Lets those that are joining follow from now on; nobody is notified in the meantime."""
        joining = list(self._joining)
        if not joining:
            return
        snapshot = await tail.snapshot(self._database.reading())
        if not self._listeners:
            self._position = snapshot.start
        for joined in joining:
            if joined in self._joining:
                subject, notify = self._joining.pop(joined)
                self._listeners.setdefault(subject, {}).setdefault(notify, snapshot)
                if not joined.done():
                    joined.set_result(None)

    async def _notify(self, events: list[tuple[Position, Row]]) -> None:
        for position, (event_id, kind, subject, time) in events:
            if subject in self._listeners:
                await self._notify_all(position, FeedEvent(kind, subject, time, event_id))
            self._position = position

    async def _notify_all(self, position: Position, event: FeedEvent) -> None:
        listeners = self._listeners[event.subject]
        for notify, since in tuple(listeners.items()):
            if notify not in listeners or since.includes(position):
                continue
            try:
                notify(event)
            except (Exception, asyncio.CancelledError):  # noqa: BLE001 (the listener's own affair)
                _log.exception("a listener to %s failed", event.subject)
            self._calls += 1
            if self._calls % _CALLS == 0:
                await asyncio.sleep(0)


def _ended() -> Unavailable:
    return Unavailable("The service is being stopped")
