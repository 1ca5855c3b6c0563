"""Blocking calls about hosts, in threads of their own, so that those that hang hold up no others.

A thread is a daemon and serves one call: nobody waits for it at the end of the process, as is done for those
of an executor. What bounds them is who may begin. A call that takes longer than a second gives its place up,
and its host is remembered: the next call for that one waits with its like, for a few places apart.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")

_QUICK_SECONDS = 1.0
_HANGING = 2  # for each place: calls that gave theirs up
_APART = 4  # places for each that silent hosts have
_LINE, _LINE_APART = 64, 8  # for each place: calls in all before another is refused
_REMEMBERED = 10_000


class Threads(Generic[T]):
    """Makes blocking calls, `at_once` of those that may be quick."""

    def __init__(self, call: Callable[[str], T], *, at_once: int) -> None:
        self._call = call
        self._at_once = at_once
        self._places = asyncio.Semaphore(at_once)
        self._places_apart = asyncio.Semaphore(max(1, at_once // _APART))
        self._silent: dict[str, None] = {}  # hosts whose last call took longer than a second
        self._count = 0
        self._hanging = 0

    async def result(self, host: str) -> T:
        """What the call comes to; raises what it raises, and `OSError` if too many others are waiting.

        Beyond some line the silent hosts are refused first. A call that began goes on in its thread when
        this is cancelled.
        """
        silent = host in self._silent
        if self._count >= self._at_once * (_LINE_APART if silent else _LINE):
            raise OSError("too many names are being looked up")
        self._count += 1
        try:
            return await self._made(host, silent=silent)
        finally:
            self._count -= 1

    async def _made(self, host: str, *, silent: bool) -> T:
        async with self._places_apart if silent else self._places:
            making = _in_thread(partial(self._call, host))
            await asyncio.wait([making], timeout=_QUICK_SECONDS)
            self._remember(host, silent=not making.done())
            if silent or self._hanging >= _HANGING * self._at_once:
                await asyncio.wait([making])
        self._hanging += 1
        try:
            return await making
        finally:
            self._hanging -= 1

    def _remember(self, host: str, *, silent: bool) -> None:
        self._silent.pop(host, None)
        if silent:
            if len(self._silent) >= _REMEMBERED:
                del self._silent[next(iter(self._silent))]
            self._silent[host] = None


def _in_thread(call: Callable[[], T]) -> asyncio.Future[T]:
    loop = asyncio.get_running_loop()
    made: asyncio.Future[T] = loop.create_future()
    made.add_done_callback(lambda made: made.cancelled() or made.exception())  # who waited may have left

    def conclude(conclusion: Callable[[], None]) -> None:
        if not made.done():
            conclusion()

    def run() -> None:
        try:
            conclusion = partial(made.set_result, call())
        except Exception as error:  # noqa: BLE001 (handed on)
            conclusion = partial(made.set_exception, error)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(conclude, conclusion)

    Thread(target=run, name="names", daemon=True).start()
    return made
