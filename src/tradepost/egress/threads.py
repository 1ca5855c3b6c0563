"""Blocking calls about hosts, in threads of their own, so that calls that hang hold up no others.

A thread is a daemon and serves one call: the end of the process does not wait for it, as it would for the
threads of an executor. What bounds the threads is how many may begin. A call that takes longer than a second
gives up its place, and its host is remembered as silent: the next call for it waits in a line of its own, for
a few places.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Generic, TypeVar

from tradepost.egress.bounded_dict import BoundedDict

T = TypeVar("T")

_QUICK_SECONDS = 1.0
_HANGING = 2  # for each place: calls that gave theirs up
_SILENT_SHARE = 4  # places for each one that silent hosts have
_LINE, _SILENT_LINE = 64, 8  # for each place: calls in all before another is refused
_REMEMBERED = 10_000


class Threads(Generic[T]):
    """Makes blocking calls, `at_once` of those that may be quick."""

    def __init__(self, call: Callable[[str], T], *, at_once: int) -> None:
        self._call = call
        self._at_once = at_once
        self._places = asyncio.Semaphore(at_once)
        self._silent_places = asyncio.Semaphore(max(1, at_once // _SILENT_SHARE))
        self._silent = BoundedDict[None](_REMEMBERED)  # hosts whose last call took longer than a second
        self._count = 0
        self._hanging = 0

    async def result(self, host: str) -> T:
        """The result of the call. Raises what the call raises, and `OSError` if too many others are waiting.

        Calls for silent hosts are refused first. A call that has begun goes on in its thread when this is
        cancelled.
        """
        silent = host in self._silent
        if self._count >= self._at_once * (_SILENT_LINE if silent else _LINE):
            raise OSError("too many names are being looked up")
        self._count += 1
        try:
            return await self._made(host, silent=silent)
        finally:
            self._count -= 1

    async def _made(self, host: str, *, silent: bool) -> T:
        async with self._silent_places if silent else self._places:
            making = _in_thread(partial(self._call, host))
            await asyncio.wait([making], timeout=_QUICK_SECONDS)
            if making.done():
                self._silent.pop(host, None)
            else:
                self._silent[host] = None
            if silent or self._hanging >= _HANGING * self._at_once:
                await asyncio.wait([making])
        self._hanging += 1
        try:
            return await making
        finally:
            self._hanging -= 1


def _in_thread(call: Callable[[], T]) -> asyncio.Future[T]:
    loop = asyncio.get_running_loop()
    made: asyncio.Future[T] = loop.create_future()
    made.add_done_callback(lambda made: made.cancelled() or made.exception())  # the caller may have left

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
