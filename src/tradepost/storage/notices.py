"""Hints between processes on one PostgreSQL: NOTIFY after the commit, LISTEN on a connection of its own.

NOTIFY is never part of a transaction that changes anything: there it would put all commits in a row. It is
sent afterwards, at once and then at most every few milliseconds, however much is committed meanwhile. An
engine that speaks PostgreSQL's protocol without NOTIFY loses the hints and nothing else.
"""

import asyncio
import logging
import math
import secrets
from contextlib import suppress

import asyncpg

from tradepost.storage.connection_pool import Connection, ConnectionPool
from tradepost.storage.database import Noticed

_log = logging.getLogger("tradepost.storage")

_CHANNEL = "tradepost_events"
_APART_SECONDS = 0.01
_PATIENCE_SECONDS = 5.0
_PROBE_SECONDS = 30.0  # a connection that died in silence is found out
_PAUSES_SECONDS: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)
_SILENCE_SECONDS = 10.0  # where NOTIFY fails it is not tried with every commit
_FAILURES = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)


class Notices:
    """What this process says to the others, and what it hears of them."""

    def __init__(self, url: str, pool: ConnectionPool) -> None:
        self._url = url
        self._pool = pool
        self._name = secrets.token_hex(8)
        self._watching: set[Noticed] = set()
        self._due = False
        self._telling: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._listening: asyncio.Task[None] | None = None

    def tell(self) -> None:
        """Calls all who watch here, and has the other processes told."""
        self._tell_here()
        self._due = True
        if self._telling is None and self._may_tell():
            self._telling = asyncio.create_task(self._tell_others())

    def watch(self, noticed: Noticed) -> None:
        self._watching.add(noticed)
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())

    async def unwatch(self, noticed: Noticed) -> None:
        self._watching.discard(noticed)
        if not self._watching:
            await self._stop_listening()

    async def stop(self) -> None:
        """Says what is still to be said, and hears no more."""
        self._watching.clear()
        await self._stop_listening()
        if self._telling is not None:
            await self._telling
        self._not_before = math.inf

    def _tell_here(self) -> None:
        for noticed in tuple(self._watching):
            noticed()

    def _may_tell(self) -> bool:
        return asyncio.get_running_loop().time() >= self._not_before

    async def _tell_others(self) -> None:
        try:
            while self._due and self._may_tell():
                self._due = False
                await self._notify()
                await asyncio.sleep(_APART_SECONDS)
        finally:
            self._telling = None

    async def _notify(self) -> None:
        try:
            await self._pool.execute(f"NOTIFY {_CHANNEL}, '{self._name}'")
        except _FAILURES as error:
            self._not_before = asyncio.get_running_loop().time() + _SILENCE_SECONDS
            _log.warning("other processes learn of events late: NOTIFY failed: %r", error)

    async def _stop_listening(self) -> None:
        task, self._listening = self._listening, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _listen(self) -> None:
        """Listens until cancelled, over one connection after the other; says once that nothing is heard."""
        pauses = _PAUSES_SECONDS
        while True:
            connection = None
            try:
                connection = await asyncpg.connect(
                    self._url,
                    timeout=_PATIENCE_SECONDS,
                    server_settings={"application_name": "tradepost-notices"},
                )
                lost = asyncio.Event()
                connection.add_termination_listener(lambda _, lost=lost: lost.set())
                await connection.add_listener(_CHANNEL, self._hear)
                pauses = _PAUSES_SECONDS
                self._tell_here()  # what was said until now was not heard
                await _stay(connection, lost)
            except _FAILURES as error:
                if pauses is _PAUSES_SECONDS:
                    _log.warning("events of other processes are seen late: LISTEN failed: %r", error)
            finally:
                await _close(connection)
            await asyncio.sleep(pauses[0])
            pauses = pauses[1:] or pauses

    def _hear(self, *notice: object) -> None:
        """A notice: the connection, the sender's process, the channel, and what was said."""
        if notice[-1] != self._name:
            self._tell_here()


async def _stay(connection: Connection, lost: asyncio.Event) -> None:
    """Stays for as long as the connection does; raises when it is lost."""
    while not lost.is_set():
        await connection.execute("SELECT 1", timeout=_PATIENCE_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(_PROBE_SECONDS):
                await lost.wait()
    raise ConnectionError("the connection was lost")


async def _close(connection: "Connection | None") -> None:
    if connection is not None:
        with suppress(*_FAILURES):
            await connection.close(timeout=1)
