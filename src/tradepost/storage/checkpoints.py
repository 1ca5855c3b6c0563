"""Checkpoints copy SQLite's write-ahead log into the database file, in the background.

All checkpoints are passive: they never wait, and leave pages that an open read transaction still needs to the
next one. Other kinds make every writer wait for that reader; Litestream removed them after writes had blocked
indefinitely (github.com/benbjohnson/litestream, issue 724).

SQLite restarts the log when a transaction begins after the whole log was copied and no reader uses it. Under
load this never happens by itself, because there are commits while the thread copies. So once the log is long
and little is left to copy, the writer copies the rest between two groups of writes.
"""

import logging
import threading
from collections.abc import Callable
from typing import Any

import apsw

_log = logging.getLogger("tradepost.storage")

CHECKPOINT = "PRAGMA wal_checkpoint(PASSIVE)"

RESTARTED_BYTES = 64 * 2**20  # the size to which the log file is truncated when the log restarts
_GROWTH_PAGES = 4_000  # 16 MiB of log between checkpoints: each copies a page once, however often it changed
_LONG_PAGES = 16_000  # 64 MiB: each restart makes a group of writes wait for a sync of the database file
_RETRY_SECONDS = 1.0  # between two attempts to copy a long log that a reader still needs


class Checkpoints:
    """The thread that makes checkpoints. `rest_is_due` asks the writer for one between two transactions."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self.rest_is_due = False
        self._connect = connect
        self._pages = 0  # in the log
        self._requested_pages = 0  # in the log when a checkpoint was last requested
        self._is_incomplete = False
        self._requested = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="tradepost-checkpoint", daemon=True)
        self._thread.start()

    def note(self, connection: apsw.Connection, database: str, pages: int) -> int:
        """SQLite's hook after each commit, which gets the number of pages in the log."""
        del connection, database
        if pages < self._pages:  # the log has restarted
            self._requested_pages = 0
        self._pages = pages
        if pages - self._requested_pages >= _GROWTH_PAGES:
            self._requested_pages = pages
            self._requested.set()
        return apsw.SQLITE_OK

    def stop(self) -> None:
        """Ends the thread after the checkpoint that it is making."""
        self._stopping = True
        self._requested.set()
        self._thread.join()

    def _run(self) -> None:
        connection = self._connect()
        while not self._stopping:
            self._requested.wait(_RETRY_SECONDS if self._is_incomplete else None)
            self._requested.clear()
            try:
                self._checkpoint(connection)
            except apsw.Error:
                _log.exception("a checkpoint failed; the next one will copy its pages too")
        connection.close()

    def _checkpoint(self, connection: apsw.Connection) -> None:
        result: Any = connection.execute(CHECKPOINT).fetchall()
        [(_, pages, copied)] = result
        is_long = pages > _LONG_PAGES
        self._is_incomplete = is_long and copied < pages
        self.rest_is_due = is_long and self._pages - copied < _GROWTH_PAGES
