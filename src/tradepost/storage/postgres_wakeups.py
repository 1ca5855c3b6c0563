"""Wake-ups between processes on one PostgreSQL: NOTIFY after the commit, LISTEN on a dedicated connection.

NOTIFY is never part of a transaction that changes data, because it would serialize all commits. It is sent
after the commit, at once and then at most every 10 ms, regardless of the number of commits. On an engine that
has PostgreSQL's protocol without NOTIFY, only the wake-ups are lost.
"""

import asyncio
import logging
import math
import secrets
from contextlib import suppress

import asyncpg

from tradepost.storage.connection_pool import Connection, ConnectionPool
from tradepost.storage.database import OnWakeup

_log = logging.getLogger("tradepost.storage")

_CHANNEL = "tradepost_events"
_NOTIFY_INTERVAL_SECONDS = 0.01
_TIMEOUT_SECONDS = 5.0
_PROBE_SECONDS = 30.0  # detects a connection that was lost without notice
_RECONNECT_SECONDS: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)
_NOTIFY_RETRY_SECONDS = 10.0  # after a failure, so that not every commit tries again
_FAILURES = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)


class PostgresWakeups:
    """The listeners of this process, and the notifications between this process and others."""

    def __init__(self, url: str, pool: ConnectionPool) -> None:
        self._url = url
        self._pool = pool
        self._name = secrets.token_hex(8)
        self._listeners: set[OnWakeup] = set()
        self._notify_due = False
        self._notifying: asyncio.Task[None] | None = None
        self._notify_not_before = 0.0
        self._listening: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Calls the listeners of this process, and notifies other processes."""
        self._call_listeners()
        self._notify_due = True
        if self._notifying is None and self._may_notify():
            self._notifying = asyncio.create_task(self._notify_others())

    def watch(self, on_wakeup: OnWakeup) -> None:
        self._listeners.add(on_wakeup)
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())

    async def unwatch(self, on_wakeup: OnWakeup) -> None:
        self._listeners.discard(on_wakeup)
        if not self._listeners:
            await self._stop_listening()

    async def stop(self) -> None:
        """Stops listening, and sends the notification that is due, if any."""
        self._listeners.clear()
        await self._stop_listening()
        if self._notifying is not None:
            await self._notifying
        self._notify_not_before = math.inf

    def _call_listeners(self) -> None:
        for on_wakeup in tuple(self._listeners):
            on_wakeup()

    def _may_notify(self) -> bool:
        return asyncio.get_running_loop().time() >= self._notify_not_before

    async def _notify_others(self) -> None:
        try:
            while self._notify_due and self._may_notify():
                self._notify_due = False
                await self._notify()
                await asyncio.sleep(_NOTIFY_INTERVAL_SECONDS)
        finally:
            self._notifying = None

    async def _notify(self) -> None:
        try:
            await self._pool.execute(f"NOTIFY {_CHANNEL}, '{self._name}'")
        except _FAILURES as error:
            self._notify_not_before = asyncio.get_running_loop().time() + _NOTIFY_RETRY_SECONDS
            _log.warning("other processes see events with a delay: NOTIFY failed: %r", error)

    async def _stop_listening(self) -> None:
        task, self._listening = self._listening, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _listen(self) -> None:
        """Listens until it is cancelled, reconnecting as needed; logs only the first of several failures."""
        pauses = _RECONNECT_SECONDS
        while True:
            connection = None
            try:
                connection = await asyncpg.connect(
                    self._url,
                    timeout=_TIMEOUT_SECONDS,
                    server_settings={"application_name": "tradepost-notices"},
                )
                lost = asyncio.Event()
                connection.add_termination_listener(lambda _, lost=lost: lost.set())
                await connection.add_listener(_CHANNEL, self._on_notification)
                pauses = _RECONNECT_SECONDS
                self._call_listeners()  # earlier notifications were missed
                await _probe(connection, lost)
            except _FAILURES as error:
                if pauses is _RECONNECT_SECONDS:
                    _log.warning("events of other processes arrive with a delay: LISTEN failed: %r", error)
            finally:
                await _close(connection)
            await asyncio.sleep(pauses[0])
            pauses = pauses[1:] or pauses

    def _on_notification(self, *notification: object) -> None:
        """Takes the connection, the sender's process id, the channel and the payload: the sender's name."""
        if notification[-1] != self._name:
            self._call_listeners()


async def _probe(connection: Connection, lost: asyncio.Event) -> None:
    """Probes the connection until it is lost. Raises `ConnectionError` or what the probe raises."""
    while not lost.is_set():
        await connection.execute("SELECT 1", timeout=_TIMEOUT_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(_PROBE_SECONDS):
                await lost.wait()
    raise ConnectionError("the connection was lost")


async def _close(connection: "Connection | None") -> None:
    if connection is not None:
        with suppress(*_FAILURES):
            await connection.close(timeout=1)
