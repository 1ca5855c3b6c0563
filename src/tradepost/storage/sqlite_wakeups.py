"""Wake-ups after commits to a SQLite file: from this process, and from other processes.

Listeners in the process are called directly. A commit of another process changes `PRAGMA data_version`, which
is polled over a connection that is open only while there are listeners.
"""

import asyncio
from collections.abc import Callable

import apsw

from tradepost.problems import Unavailable
from tradepost.storage.database import OnWakeup

_POLL_SECONDS = 0.02


class SqliteWakeups:
    """The listeners of this process, and the poll of the file for them."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._connection: apsw.Connection | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._listeners: set[OnWakeup] = set()
        self._last_version: object = None

    def wake(self) -> None:
        """Calls the listeners of this process."""
        for on_wakeup in tuple(self._listeners):
            on_wakeup()

    def watch(self, on_wakeup: OnWakeup) -> None:
        self._listeners.add(on_wakeup)
        if self._timer is None:
            self._poll()

    def unwatch(self, on_wakeup: OnWakeup) -> None:
        self._listeners.discard(on_wakeup)
        if not self._listeners:
            self.stop()

    def stop(self) -> None:
        self._listeners.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _poll(self) -> None:
        """Polls the file once and schedules the next poll, which also retries if the file is busy now."""
        self._timer = asyncio.get_running_loop().call_later(_POLL_SECONDS, self._poll)
        try:
            version = self._version()
        except (apsw.Error, Unavailable):
            return
        if version != self._last_version:
            self._last_version = version
            self.wake()

    def _version(self) -> object:
        """A value that changes when another connection commits, in whichever process."""
        if self._connection is None:
            self._connection = self._connect()
            self._connection.set_busy_timeout(0)  # the event loop must not wait
        return self._connection.execute("PRAGMA data_version").fetchall()[0][0]
