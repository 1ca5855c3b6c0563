"""The writer: changes products, each an event for every endpoint, as fast as it goes or at a steady rate.

At a rate it is an open loop: a change is sent when it is due, however long earlier ones take. It runs in the
process that measures, which stays on the core of the load meanwhile.
"""

import asyncio
import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

import uvloop
from aiohttp import ClientSession, ClientTimeout, TCPConnector

from benchmarks import cores
from benchmarks.client import RefusedError
from benchmarks.request import Request

_CONNECTIONS = 32
_PATIENCE = 30.0


@dataclass(frozen=True)
class Written:
    """A change that was made: the subject of its event, when it was sent and when answered."""

    subject: str
    sent: float
    answered: float


def write(port: int, key: str, changes: Sequence[Request], rate: float | None) -> list[Written]:
    """In the order given, at so many a second. RefusedError if an answer is anything but 2xx."""
    with _on_load_core():
        return uvloop.run(_write(port, key, changes, rate))


@contextmanager
def _on_load_core() -> Iterator[None]:
    if cores.unpinnable():
        yield
        return
    before = os.sched_getaffinity(0)
    cores.pin(os.getpid(), cores.LOAD_CORE)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        os.sched_setaffinity(0, before)


async def _write(port: int, key: str, changes: Sequence[Request], rate: float | None) -> list[Written]:
    async with ClientSession(
        f"http://127.0.0.1:{port}",
        connector=TCPConnector(limit=_CONNECTIONS),
        timeout=ClientTimeout(total=_PATIENCE),
    ) as session:

        async def one(change: Request) -> Written:
            sent = perf_counter()
            headers = change.headers(key)
            async with session.request(
                change.method, change.target, data=change.body, headers=headers
            ) as answer:
                body = await answer.read()
            if answer.status not in range(200, 300):
                raise RefusedError(f"{change.method} {change.target}: {answer.status} {body[:600]!r}")
            return Written(change.target.removeprefix("/v1/"), sent, perf_counter())

        if rate is None:
            return await asyncio.gather(*map(one, changes))
        async with asyncio.TaskGroup() as tasks:
            began = perf_counter()
            under_way = []
            for number, change in enumerate(changes):
                await asyncio.sleep(max(0.0, began + number / rate - perf_counter()))
                under_way.append(tasks.create_task(one(change)))
        return [task.result() for task in under_way]
