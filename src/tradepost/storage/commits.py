"""Hints that something was committed to a SQLite file: those of this process, and those of others.

Within a process they are told directly. What another process commits is seen by asking the file at intervals
whether it is still what it was (`PRAGMA data_version`), over a connection that is there only while watched.
"""

import asyncio
from collections.abc import Callable

import apsw

from tradepost.problems import Unavailable
from tradepost.storage.database import Noticed

_EVERY_SECONDS = 0.02


class Commits:
    """Whoever watches a file, and the watch itself."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._connection: apsw.Connection | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._watching: set[Noticed] = set()
        self._seen: object = None

    def tell(self) -> None:
        """Calls all who watch here."""
        for noticed in tuple(self._watching):
            noticed()

    def watch(self, noticed: Noticed) -> None:
        self._watching.add(noticed)
        if self._timer is None:
            self._look()

    def unwatch(self, noticed: Noticed) -> None:
        self._watching.discard(noticed)
        if not self._watching:
            self.stop()

    def stop(self) -> None:
        self._watching.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _look(self) -> None:
        """One look, and the next one arranged; a file that is busy is looked at again then."""
        self._timer = asyncio.get_running_loop().call_later(_EVERY_SECONDS, self._look)
        try:
            version = self._version()
        except (apsw.Error, Unavailable):
            return
        if version != self._seen:
            self._seen = version
            self.tell()

    def _version(self) -> object:
        """Other than the last time if another connection has committed, whichever process it is of."""
        if self._connection is None:
            self._connection = self._connect()
            self._connection.set_busy_timeout(0)  # the loop waits for nobody
        return self._connection.execute("PRAGMA data_version").fetchall()[0][0]
