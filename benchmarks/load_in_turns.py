"""The load for two servers in turn: a slice of time for the one, then a slice for the other.

A disturbance that lasts longer than a slice affects both alike. Runs in a process of its own on its own core
and within a slice works as the load for one server does.
"""

import asyncio
import gc
import itertools
import sys
import time

import msgspec
import uvloop
from msgspec.structs import replace

from benchmarks import cores
from benchmarks.load import CONNECTIONS, Connection, Load, Tally
from benchmarks.sample import Sample, sample

_SLICE_SECONDS = 0.1
_PATIENCE = 30.0


class Side:
    """One of the two servers; its connections rest during the other's slices."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.tally = Tally()
        self.next_request = itertools.cycle(load.requests).__next__
        self._resting: list[Resting] = []
        self._running = False
        self._all_rest = asyncio.Event()

    def start(self, connection: "Resting") -> bool:
        """Whether the connection may ask now; if not, it asks at the start of the next slice."""
        if not self._running:
            self._resting.append(connection)
            if len(self._resting) == CONNECTIONS:
                self._all_rest.set()
        return self._running

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(CONNECTIONS):
            await loop.create_connection(lambda: Resting(self), "127.0.0.1", self.load.port)
        await self._all_rest.wait()

    async def run(self) -> float:
        """One slice, until its last answer; returns the seconds it took."""
        began = time.perf_counter()
        self._all_rest.clear()
        self._running = True
        resting, self._resting = self._resting, []
        for connection in resting:
            connection.ask(began)
        await asyncio.sleep(_SLICE_SECONDS)
        self._running = False
        await self._all_rest.wait()
        return time.perf_counter() - began


class Resting(Connection):
    """A connection that asks during the slices of its side only."""

    def __init__(self, side: Side) -> None:
        super().__init__(side.next_request, side.tally, side.load.mark_of_refusal)
        self._side = side

    def ask(self, now: float) -> None:
        if self._side.start(self):
            super().ask(now)


async def drive(loads: list[Load]) -> list[Sample]:
    """A sample of each."""
    sides = [Side(load) for load in loads]
    async with asyncio.timeout(_PATIENCE + 2 * (loads[0].warm_up + loads[0].seconds)):
        for side in sides:
            await side.connect()
        await _in_turn(sides, loads[0].warm_up)
        for side in sides:
            side.tally.latencies.clear()
        before = [cores.cpu_seconds(side.load.pid) for side in sides]
        elapsed = await _in_turn(sides, loads[0].seconds)
    used = [cores.cpu_seconds(side.load.pid) - cpu for side, cpu in zip(sides, before, strict=True)]
    return [_sampled(side, took, cpu) for side, took, cpu in zip(sides, elapsed, used, strict=True)]


async def _in_turn(sides: list[Side], seconds: float) -> list[float]:
    """So many seconds for each, in slices in the order A B B A; returns the seconds each of them took."""
    elapsed = [0.0] * len(sides)
    for number in range(round(seconds / _SLICE_SECONDS)):
        for index in (0, 1) if number % 2 == 0 else (1, 0):
            elapsed[index] += await sides[index].run()
    return elapsed


def _sampled(side: Side, elapsed: float, cpu: float) -> Sample:
    tally = side.tally
    tally.over = True
    if not tally.latencies:
        raise RuntimeError(f"no answer within {elapsed:.1f} s; refused: {tally.refusal or 'nothing'}")
    seen = sample(tally.latencies, elapsed, cpu)
    return replace(seen, refused=tally.refused, refusal=tally.refusal)


def main() -> None:
    loads = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=list[Load])
    gc.disable()
    sys.stdout.buffer.write(msgspec.json.encode(uvloop.run(drive(loads))))


if __name__ == "__main__":
    main()
