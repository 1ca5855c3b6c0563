"""Waiting for what others bring about: for its signal where there is one, else turn by turn of the event loop."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

_SECONDS = 20


class Changes:
    """What happens to something: whoever waits for it to be so or so looks again each time it is told."""

    def __init__(self) -> None:
        self._told = asyncio.Event()

    def tell(self) -> None:
        """Something has changed; to be called on the loop of those who wait."""
        self._told.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Waits until something holds; fails after 20 s."""
        async with asyncio.timeout(_SECONDS):
            while not holds():
                self._told.clear()
                await self._told.wait()


async def until(holds: Callable[[], bool], meanwhile: Callable[[], Awaitable[Any]] | None = None) -> None:
    """Waits until something holds that others on this loop bring about and do not tell; fails after 20 s."""
    async with asyncio.timeout(_SECONDS):
        while not holds():
            if meanwhile:
                await meanwhile()
            await asyncio.sleep(0)


async def turns(count: int = 20) -> None:
    """So many turns of the loop, in which everybody on it takes what the kernel has for them."""
    for _ in range(count):
        await asyncio.sleep(0)
