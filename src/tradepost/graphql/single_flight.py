"""Work that several wait for at once, done once: the push that all subscribers to one order get."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_KEPT_SECONDS = 1.0  # for callers that come a little later


class SingleFlight(Generic[T]):
    """Results by key. All callers get the same result or failure; one that is cancelled stops no other."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[T]] = {}

    async def of(self, key: Hashable, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the first caller's `make`; raises what that raises."""
        task = self._tasks.get(key)
        if task is None:
            loop = asyncio.get_running_loop()
            task = self._tasks[key] = loop.create_task(make())
            loop.call_later(_KEPT_SECONDS, self._forget, key)
        return await asyncio.shield(task)

    def _forget(self, key: Hashable) -> None:
        task = self._tasks[key]
        if task.done():
            del self._tasks[key]
        else:
            task.add_done_callback(lambda _: self._tasks.pop(key, None))
