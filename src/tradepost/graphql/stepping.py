"""Coroutines run by hand, step by step, without a task for each.

`coroutine.send(None)` runs a coroutine until it waits and returns what it waits for: as a rule something that
only the event loop can wait for, which `resumed` passes on to it. A coroutine that has ended raises
`StopIteration` with its result. So what never waits costs neither a task nor a turn of the loop, and what is
cancelled is one task, whatever runs in it.

A coroutine can also wait for its caller instead of the loop: `await parked()`. The caller gets `PARKED` and
steps it again when what it waits for is there.
"""

from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any


class _Parked:
    """What a coroutine waits for that waits for its caller."""


PARKED = _Parked()


@coroutine
def parked() -> Generator[_Parked, None, None]:
    """Waits until the caller steps this coroutine again; to be awaited only where a caller does."""
    yield PARKED


@coroutine
def resumed(work: Coroutine[Any, Any, Any], waits: Any) -> Generator[Any, Any, Any]:
    """Goes on with a coroutine that waits for `waits`; its result, or `PARKED` if it parks before its end.

    Raises what it raises. An exception that is thrown in while it waits, such as a cancellation, is passed on
    to it.
    """
    try:
        while waits is not PARKED:
            try:
                sent = yield waits
            except BaseException as thrown:  # noqa: BLE001 (handed on to the coroutine)
                waits = work.throw(thrown)
            else:
                waits = work.send(sent)
    except StopIteration as done:
        return done.value
    return PARKED


async def advanced(work: Coroutine[Any, Any, Any]) -> Any:
    """Steps a coroutine until it parks or ends; `PARKED`, its result, or the exception that it raised.

    Raises only what is to end the request, such as a cancellation.
    """
    try:
        waits = work.send(None)
        return PARKED if waits is PARKED else await resumed(work, waits)
    except StopIteration as done:
        return done.value
    except Exception as failure:  # noqa: BLE001 (the caller's to tell)
        return failure
