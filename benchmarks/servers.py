"""A server as a child process on its own core: started, waited for until it answers, and always stopped."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import psutil

from benchmarks import cores
from benchmarks.client import Client
from benchmarks.request import Request

ROOT = Path(__file__).parent.parent
_START_LIMIT = 60.0
_STOP_LIMIT = 10.0


@dataclass(frozen=True)
class Probe:
    """What a server has to answer before it counts as started."""

    port: int
    request: Request
    key: str


@dataclass(frozen=True)
class Server:
    pid: int
    port: int
    seconds_to_answer: float


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def environment(changes: Mapping[str, str]) -> dict[str, str]:
    """This process's own, without settings of tradepost that somebody happens to have in their shell."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRADEPOST_")}
    return {**inherited, **changes}


@contextmanager
def serving(
    command: Sequence[str],
    settings: Mapping[str, str],
    probe: Probe,
    log: Path,
    core: int | None = cores.SERVER_CORE,
) -> Iterator[Server]:
    """The server is there when the probe is answered with 2xx; its output goes to `log`.

    `core` is the one it is kept on; with None it runs wherever there is room.
    """
    with log.open("wb") as output:
        began = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment(settings), stdout=output, stderr=subprocess.STDOUT
        )
        try:
            if core is not None:
                cores.pin(process.pid, core)
            _wait_for_answer(process, probe, log)
            yield Server(process.pid, probe.port, time.perf_counter() - began)
        finally:
            _stop(process)


def _wait_for_answer(process: subprocess.Popen[bytes], probe: Probe, log: Path) -> None:
    deadline = time.monotonic() + _START_LIMIT
    while not _answers(probe):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the server does not answer: {process.args!r}\n{_tail(log)}")
        time.sleep(0.005)


def _answers(probe: Probe) -> bool:
    try:
        with Client(probe.port, probe.key) as client:
            client.send(probe.request)
    except (OSError, HTTPException):
        return False
    return True


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-2_000:]


def _stop(process: subprocess.Popen[bytes]) -> None:
    family = cores.tree(process.pid)
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_LIMIT)
    for member in family:
        with suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait()
