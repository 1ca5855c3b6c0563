"""Leases: whose claim on a delivery it is, so that the claims of a process that was killed can be told.

A lease ends by itself after a time. On the machine it was made on it need not be waited for: a process that
is no longer there will not come back to it.
"""

import itertools
import os
import uuid
from collections.abc import Iterable
from pathlib import Path

_ZOMBIE = "Z"  # it was killed, and its parent has not noticed yet


class Leases:
    """The names of the leases of one worker."""

    def __init__(self) -> None:
        self._realm = _realm()
        _, began = _stat(os.getpid())
        self._worker = f"{self._realm}/{os.getpid()}/{began}/{uuid.uuid4().hex[:8]}"
        self._numbers = itertools.count()

    def new(self) -> str:
        return f"{self._worker}/{next(self._numbers)}"

    def of_the_dead(self, leases: Iterable[str]) -> list[str]:
        """Those of processes that ran here and do not any more."""
        by_process: dict[str, list[str]] = {}
        for each in leases:
            by_process.setdefault(each.rpartition("/")[0], []).append(each)
        return [each for process, its in by_process.items() if self._is_dead(process) for each in its]

    def _is_dead(self, process: str) -> bool:
        realm, pid, began, _ = process.split("/")
        return realm == self._realm and not _runs(int(pid), began)


def _realm() -> str:
    """Where a process id means one process: a boot of a machine, and a namespace on it. Else nowhere else."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}-{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return uuid.uuid4().hex


def _runs(pid: int, began: str) -> bool:
    """Whether a process that began then is still there; one that cannot be looked at may be."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    state, then = _stat(pid)
    return state != _ZOMBIE and then in ("", began)


def _stat(pid: int) -> tuple[str, str]:
    """The state of a process, and when it began, in ticks since the boot; empty if that cannot be seen."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return "", ""
    return fields[0], fields[19]  # proc(5): those behind the name begin with the third
