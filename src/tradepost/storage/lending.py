"""Connections of a pool, handed from use to use: asyncpg's own pool starts a task to take each one back.

Who waits is served in the order of coming. A connection whose last use failed or was cancelled goes back to
the pool, which sees to it that it is fit for another.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg


class Lending:
    """Lends up to `size` connections of a pool; who waits longer than `seconds` gets a `TimeoutError`."""

    def __init__(self, pool: Any, size: int, seconds: float) -> None:
        self._pool = pool
        self._size = size
        self._seconds = seconds
        self._taken = 0  # from the pool
        self._idle: list[Any] = []
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._returning: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[Any]:
        """A connection for a while."""
        connection = self._ready() or await self._next()
        sound = False
        try:
            yield connection
            sound = True
        finally:
            self._put(connection, sound=sound)

    async def fetch(self, sql: str, *values: Any) -> list[Any]:
        """All rows, over whichever connection is free."""
        connection = self._ready() or await self._next()
        sound = False
        try:
            rows: list[Any] = await connection.fetch(sql, *values)
            sound = True
        finally:
            self._put(connection, sound=sound)
        return rows

    async def fetchrow(self, sql: str, *values: Any) -> Any:
        """The first row, or None."""
        connection = self._ready() or await self._next()
        sound = False
        try:
            row = await connection.fetchrow(sql, *values)
            sound = True
        finally:
            self._put(connection, sound=sound)
        return row

    async def stop(self) -> None:
        """Gives all back to the pool."""
        while self._idle:
            self._return(self._idle.pop())
        await asyncio.gather(*self._returning)

    def _ready(self) -> Any:
        """A connection that is at hand and was not lost while it lay there; else None."""
        while self._idle:
            connection = self._idle.pop()
            if _is_open(connection):
                return connection
            self._return(connection)
        return None

    async def _next(self) -> Any:
        """A connection that is not at hand: another one of the pool, or the next that comes back."""
        while self._taken >= self._size:
            connection = await self._handed()
            if connection is not None:
                return connection
        self._taken += 1
        try:
            return await self._pool.acquire(timeout=self._seconds)
        except BaseException:
            self._taken -= 1
            self._hand(None)
            raise

    async def _handed(self) -> Any:
        """What comes back, once it is one's turn; None if the pool is to be asked for another."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[Any] = loop.create_future()
        self._waiting.append(turn)
        patience = loop.call_later(self._seconds, _give_up, turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._put(turn.result(), sound=True)
            raise
        finally:
            patience.cancel()

    def _hand(self, connection: Any) -> bool:
        """Gives it to whoever has waited longest."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(connection)
                return True
        return False

    def _put(self, connection: Any, *, sound: bool) -> None:
        if connection is None:
            self._hand(None)
        elif not sound or not _is_open(connection):
            self._return(connection)
        elif not self._hand(connection):
            self._idle.append(connection)

    def _return(self, connection: Any) -> None:
        task = asyncio.get_running_loop().create_task(self._returned(connection))
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)

    async def _returned(self, connection: Any) -> None:
        try:
            await self._pool.release(connection)
        finally:
            self._taken -= 1
            self._hand(None)


def _give_up(turn: "asyncio.Future[Any]") -> None:
    if not turn.done():
        turn.set_exception(TimeoutError())


def _is_open(connection: Any) -> bool:
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:  # the pool was told first
        return False
