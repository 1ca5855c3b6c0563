"""Leases: whose claim on a delivery it is, so that the claims of a killed process can be recognised.

A lease ends by itself after a time. Nobody needs to wait for that on the machine where it was made: a process
that no longer exists will not come back to it.
"""

import itertools
import os
import uuid
from collections.abc import Iterable
from pathlib import Path

_ZOMBIE = "Z"  # killed, and its parent has not noticed yet


class Leases:
    """The names of the leases of one worker."""

    def __init__(self) -> None:
        self._host = _host()
        _, started = _stat(os.getpid())
        self._worker = f"{self._host}/{os.getpid()}/{started}/{uuid.uuid4().hex[:8]}"
        self._numbers = itertools.count()

    def new(self) -> str:
        """The name of a new lease, which no other worker uses."""
        return f"{self._worker}/{next(self._numbers)}"

    def of_dead_processes(self, leases: Iterable[str]) -> list[str]:
        """Those of processes that ran on this machine and no longer do."""
        by_process: dict[str, list[str]] = {}
        for each in leases:
            by_process.setdefault(each.rpartition("/")[0], []).append(each)
        return [each for process, its in by_process.items() if self._is_dead(process) for each in its]

    def _is_dead(self, process: str) -> bool:
        host, pid, started, _ = process.split("/")
        return host == self._host and not _is_running(int(pid), started)


def _host() -> str:
    """Names where a process id means one process: a boot of a machine and a namespace on it, if known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}-{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return uuid.uuid4().hex


def _is_running(pid: int, started: str) -> bool:
    """Whether the process that started then still exists; one that cannot be looked at may."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    state, then = _stat(pid)
    return state != _ZOMBIE and then in ("", started)


def _stat(pid: int) -> tuple[str, str]:
    """The state of a process and when it started, in ticks since the boot; empty if that cannot be seen."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return "", ""
    return fields[0], fields[19]  # proc(5): after the name come the third field and those that follow it
