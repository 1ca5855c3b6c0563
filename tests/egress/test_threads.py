"""Blocking calls about hosts: what hangs is bounded, and keeps away from what does not."""

import asyncio
import gc
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.egress.receiving import WAIT
from tradepost.egress.threads import Threads

Run = Callable[[Coroutine[Any, Any, Any]], Any]

pytestmark = pytest.mark.usefixtures("impatient")


class Calls:
    """Calls that were begun; one for a host whose name begins with "silent" ends when all may `speak`."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.speak = threading.Event()

    def __call__(self, host: str) -> str:
        self.begun.append(host)
        if host.startswith("silent"):
            assert self.speak.wait(WAIT)
        return host.upper()


def made(threads: Threads[str], count: int) -> list[asyncio.Task[str]]:
    return [asyncio.create_task(threads.result(f"silent{number}")) for number in range(count)]


async def known_as_silent(threads: Threads[str], calls: Calls, count: int) -> None:
    """So many hosts have hung, and do so again."""
    tasks = made(threads, count)
    await asyncio.wait(tasks, timeout=0.5)
    calls.speak.set()
    await asyncio.gather(*tasks)
    calls.speak.clear()
    calls.begun.clear()


def test_a_call_comes_to_what_it_returns_or_raises(run: Run) -> None:
    """Whoever waits for a call has its result, or the exception it ended with."""

    def call(host: str) -> str:
        if host == "bad":
            raise ValueError(host)
        return host.upper()

    async def scene() -> None:
        threads = Threads(call, at_once=1)
        assert await threads.result("good") == "GOOD"
        with pytest.raises(ValueError, match="bad"):
            await threads.result("bad")
        assert await threads.result("good") == "GOOD"

    run(scene())


def test_a_host_that_hung_waits_with_its_like(run: Run) -> None:
    """Hosts that were silent before have a quarter of the places; the others are free for everybody else."""

    async def scene() -> None:
        calls = Calls()
        threads = Threads(calls, at_once=4)
        await known_as_silent(threads, calls, 8)
        again = made(threads, 8)
        await asyncio.sleep(0)
        await asyncio.wait(again, timeout=0.2)
        others = [f"host{number}" for number in range(8)]
        for other in others:
            await threads.result(other)
        assert calls.begun == ["silent0", *others]
        calls.speak.set()
        await asyncio.gather(*again)

    run(scene())


def test_a_host_that_speaks_again_is_one_of_the_others(run: Run) -> None:
    """After a quick call a host that was silent has its place among all again."""

    async def scene() -> None:
        calls = Calls()
        threads = Threads(calls, at_once=4)
        await known_as_silent(threads, calls, 3)
        calls.speak.set()
        await asyncio.gather(*made(threads, 3))
        calls.speak.clear()
        calls.begun.clear()
        again = made(threads, 3)
        await asyncio.sleep(0)
        await threads.result("host")
        assert calls.begun == ["silent0", "silent1", "silent2", "host"]
        calls.speak.set()
        await asyncio.gather(*again)

    run(scene())


def test_calls_that_hang_are_bounded(run: Run) -> None:
    """For each place three calls are under way at most: one that may be quick, and two that gave theirs up."""

    async def scene() -> None:
        calls = Calls()
        threads = Threads(calls, at_once=2)
        tasks = made(threads, 20)
        other = asyncio.create_task(threads.result("host"))
        await asyncio.wait([other], timeout=0.5)
        assert calls.begun == [f"silent{number}" for number in range(6)]
        calls.speak.set()
        await asyncio.gather(*tasks)
        assert await other == "HOST"

    run(scene())


def test_a_long_line_refuses_silent_hosts_first(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """When many (here two) wait, one that was silent is told so at once; a host that was not has its turn."""
    monkeypatch.setattr("tradepost.egress.threads._SILENT_LINE", 2)

    async def scene() -> None:
        calls = Calls()
        threads = Threads(calls, at_once=1)
        await known_as_silent(threads, calls, 3)
        *waiting, refused = made(threads, 3)
        await asyncio.wait([refused])
        with pytest.raises(OSError, match="too many"):
            refused.result()
        assert await threads.result("host") == "HOST"
        calls.speak.set()
        await asyncio.gather(*waiting)

    run(scene())


def test_no_line_is_endless(run: Run) -> None:
    """When very many wait, whoever it is is refused."""

    async def scene() -> None:
        calls = Calls()
        threads = Threads(calls, at_once=1)
        tasks = made(threads, 64)
        await asyncio.sleep(0)
        with pytest.raises(OSError, match="too many"):
            await threads.result("host")
        calls.speak.set()
        await asyncio.gather(*tasks)
        assert await threads.result("host") == "HOST"

    run(scene())


@pytest.mark.parametrize("seconds", [0.0, 0.2])
def test_a_call_whose_waiter_was_cancelled_is_nobodys(
    run: Run, caplog: pytest.LogCaptureFixture, seconds: float
) -> None:
    """Whoever leaves, at once or after it hung, leaves no exception behind that nobody looks at."""
    before = set(threading.enumerate())
    speak = threading.Event()

    def call(host: str) -> str:
        assert speak.wait(WAIT)
        raise ValueError(host)

    async def scene() -> None:
        task = asyncio.create_task(Threads(call, at_once=1).result("bad"))
        await asyncio.wait([task], timeout=seconds)
        [thread] = set(threading.enumerate()) - before
        task.cancel()
        await asyncio.wait([task])
        speak.set()
        await asyncio.to_thread(thread.join, WAIT)
        gc.collect()

    run(scene())
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_call_that_ends_after_its_loop_is_nobodys(run: Run) -> None:
    """A thread whose loop is closed meanwhile ends in silence."""
    calls = Calls()
    before = set(threading.enumerate())

    async def scene() -> None:
        made(Threads(calls, at_once=1), 1)
        await asyncio.to_thread(lambda: None)

    run(scene())
    [thread] = set(threading.enumerate()) - before
    assert calls.begun == ["silent0"]
    calls.speak.set()
    thread.join(WAIT)
    assert not thread.is_alive()
