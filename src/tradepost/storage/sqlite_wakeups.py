"""Wake-ups after commits to a SQLite file: from this process, and from other processes.

Listeners in the process are called directly. A commit of another process changes `PRAGMA data_version`, which
is polled over a connection that is open only while there are listeners.
"""

import asyncio
from collections.abc import Callable

import apsw

from tradepost.problems import Unavailable

_POLL_SECONDS = 0.02


class SqliteWakeups:
    """The poll of a file, which calls `wake` after commits of other connections."""

    def __init__(self, connect: Callable[[], apsw.Connection], wake: Callable[[], None]) -> None:
        self._connect = connect
        self._wake = wake
        self._connection: apsw.Connection | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._last_version: object = None

    def start(self) -> None:
        if self._timer is None:
            self._poll()

    def stop(self) -> None:
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
            self._wake()

    def _version(self) -> object:
        """A value that changes when another connection commits, in whichever process."""
        if self._connection is None:
            self._connection = self._connect()
            self._connection.set_busy_timeout(0)  # the event loop must not wait
        return self._connection.execute("PRAGMA data_version").fetchall()[0][0]
