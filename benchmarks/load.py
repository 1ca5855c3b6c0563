"""The load: a closed loop of keep-alive connections, each sending its next request after an answer.

Runs in a process of its own on its own core and parses no more of an answer than its status and length, so
that one core of it can saturate a bare server on the other. It measures its own share of that core too.
"""

import asyncio
import gc
import itertools
import sys
import time
from collections.abc import Callable
from typing import cast

import msgspec
import uvloop
from msgspec.structs import replace

from benchmarks import cores
from benchmarks.sample import Sample, sample

CONNECTIONS = 32
_LENGTH = b"\r\ncontent-length: "


class Load(msgspec.Struct, frozen=True):
    """What the process is told: whom to ask, what (in rotation), how long, and whose CPU to measure.

    `mark_of_refusal`: what no answer may have in it; looked for if there is any.
    """

    port: int
    pid: int
    requests: list[bytes]
    seconds: float
    warm_up: float
    mark_of_refusal: bytes = b""


class Tally:
    """What all connections together saw; `latencies` starts anew when the warm-up is over."""

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self.refused = 0
        self.refusal = ""
        self.over = False

    def refuse(self, answer: bytes) -> None:
        self.refused += 1
        self.refusal = self.refusal or answer[:600].decode("latin-1")


class Connection(asyncio.Protocol):
    def __init__(self, next_request: Callable[[], bytes], tally: Tally, mark_of_refusal: bytes) -> None:
        self._next_request = next_request
        self._tally = tally
        self._mark_of_refusal = mark_of_refusal
        self._head = b""
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.ask(time.perf_counter())

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._tally.over:
            self._tally.refuse(f"the server closed a connection: {exc}".encode())

    def data_received(self, data: bytes) -> None:
        if self._mark_of_refusal and self._mark_of_refusal in data:
            self._tally.refuse(data)
        if self._missing > 0:
            self._missing -= len(data)
        else:
            self._missing = self._missing_after_head(data)
        if self._missing == 0:
            now = time.perf_counter()
            self._tally.latencies.append(now - self._sent)
            self.ask(now)

    def ask(self, now: float) -> None:
        """Sends the next request."""
        self._sent = now
        self._transport.write(self._next_request())

    def _missing_after_head(self, data: bytes) -> int:
        """How many bytes of the answer are still to come; -1 while its head is not complete."""
        data = self._head + data
        end = data.find(b"\r\n\r\n")
        if end < 0:
            self._head = data
            return -1
        self._head = b""
        if data[9:10] != b"2":
            self._tally.refuse(data)
        return end + 4 + _content_length(data[: end + 2].lower()) - len(data)


def _content_length(head: bytes) -> int:
    start = head.find(_LENGTH)
    if start < 0:
        raise ValueError(f"an answer without a Content-Length: {head!r}")
    start += len(_LENGTH)
    return int(head[start : head.index(b"\r", start)])


async def drive(next_request: Callable[[], bytes], load: Load) -> Sample:
    loop = asyncio.get_running_loop()
    tally = Tally()
    for _ in range(CONNECTIONS):
        await loop.create_connection(
            lambda: Connection(next_request, tally, load.mark_of_refusal), "127.0.0.1", load.port
        )
    await asyncio.sleep(load.warm_up)
    tally.latencies.clear()
    began, own, theirs = time.perf_counter(), time.process_time(), cores.cpu_seconds(load.pid)
    await asyncio.sleep(load.seconds)
    tally.over = True
    elapsed, own = time.perf_counter() - began, time.process_time() - own
    if not tally.latencies:
        raise RuntimeError(f"no answer within {elapsed:.1f} s; refused: {tally.refusal or 'nothing'}")
    seen = sample(tally.latencies, elapsed, cores.cpu_seconds(load.pid) - theirs)
    return replace(seen, load_share=own / elapsed, refused=tally.refused, refusal=tally.refusal)


def main() -> None:
    load = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Load)
    gc.disable()
    result = uvloop.run(drive(itertools.cycle(load.requests).__next__, load))
    sys.stdout.buffer.write(msgspec.json.encode(result))


if __name__ == "__main__":
    main()
