"""Which core does what, and what a process used: servers on the first core, the load on the second."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil

SERVER_CORE = 0
LOAD_CORE = 1


def unpinnable() -> str | None:
    """Why servers and load cannot be kept apart on this machine; None if they can."""
    if not hasattr(os, "sched_setaffinity"):
        return "this system cannot pin a process to a core: server and load may disturb each other"
    if not {SERVER_CORE, LOAD_CORE} <= os.sched_getaffinity(0):
        return "fewer than two cores to use: server and load share one, all figures are too low"
    return None


def pin(pid: int, core: int) -> None:
    """Keeps a process, and all it starts from then on, on one core; does nothing where that is impossible."""
    if unpinnable() is None:
        os.sched_setaffinity(pid, {core})


def cpu_seconds(pid: int) -> float:
    """User and system time of the process and its descendants so far."""
    return sum(_over_tree(pid, _cpu_seconds))


def resident_bytes(pid: int) -> int:
    return int(sum(_over_tree(pid, lambda process: process.memory_info().rss)))


def load_average() -> float:
    """Processes that ran or wanted to in the last minute; more than a measurement brings disturb it."""
    return psutil.getloadavg()[0]


def tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _over_tree(pid: int, figure: Callable[[psutil.Process], float]) -> Iterator[float]:
    for process in tree(pid):
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            yield figure(process)


def _cpu_seconds(process: psutil.Process) -> float:
    if sys.platform != "linux":
        return float(sum(process.cpu_times()[:2]))
    # The clock of clock_getcpuclockid(3), which counts in nanoseconds; psutil's figure has steps of 10 ms.
    try:
        return time.clock_gettime(~process.pid << 3 | 2)
    except OSError as gone:
        raise ProcessLookupError(process.pid) from gone
