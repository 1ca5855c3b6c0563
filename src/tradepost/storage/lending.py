"""Connections of a pool, kept at hand between uses: asyncpg's own pool starts a task to take one back.

Nobody waits for one that lies here: as soon as somebody waits, what comes back goes to the pool. So does one
whose last use failed or was cancelled, for the pool sees to it that it is fit for another.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg


class Lending:
    """Lends the connections of a pool; a use that waits longer than `seconds` for one is a `TimeoutError`."""

    def __init__(self, pool: Any, seconds: float) -> None:
        self._pool = pool
        self._seconds = seconds
        self._idle: list[Any] = []
        self._waiting = 0
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
        self._waiting += 1
        try:
            return await self._pool.acquire(timeout=self._seconds)
        finally:
            self._waiting -= 1

    def _put(self, connection: Any, *, sound: bool) -> None:
        if sound and not self._waiting and _is_open(connection):
            self._idle.append(connection)
        else:
            self._return(connection)

    def _return(self, connection: Any) -> None:
        task = asyncio.get_running_loop().create_task(self._pool.release(connection))
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)


def _is_open(connection: Any) -> bool:
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:  # the pool was told first
        return False
