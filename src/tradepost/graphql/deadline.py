"""A deadline for what may wait: work that never does needs no clock, and most reads of SQLite never do."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from tradepost.graphql.stepping import resumed

T = TypeVar("T")


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`; raises `TimeoutError` and stops it if it waits longer than that."""
    result: T
    try:
        waits = work.send(None)
    except StopIteration as done:
        result = done.value
        return result
    async with asyncio.timeout(seconds):
        result = await resumed(work, waits)
        return result
