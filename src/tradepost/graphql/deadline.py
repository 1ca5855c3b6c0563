"""A deadline for what may wait: work that never does needs no clock, and most reads of SQLite never do."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`; raises `TimeoutError` and stops it if it waits longer than that."""
    try:
        first = work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    async with asyncio.timeout(seconds):
        return await Rest(work, first)


class Rest(Generic[T]):
    """What is left of a coroutine that waits for `first`."""

    def __init__(self, work: Coroutine[Any, Any, T], first: Any) -> None:
        self._work = work
        self._first = first

    def __await__(self) -> Generator[Any, Any, T]:
        waits = self._first
        try:
            while True:
                try:
                    sent = yield waits
                except BaseException as thrown:  # noqa: BLE001 (handed on to the work)
                    waits = self._work.throw(thrown)
                else:
                    waits = self._work.send(sent)
        except StopIteration as done:
            result: T = done.value
            return result
