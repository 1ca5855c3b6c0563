"""Whoever can be measured for a while: a server under load, or a loop without HTTP in its own process."""

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, Self

import msgspec

from benchmarks import cores
from benchmarks.load import CONNECTIONS, Load
from benchmarks.request import Request
from benchmarks.sample import Sample
from benchmarks.servers import ROOT, Server


class Contestant(Protocol):
    @property
    def name(self) -> str: ...

    def measure(self, seconds: float, warm_up: float) -> Sample: ...


@dataclass(frozen=True)
class Served:
    """`mark_of_refusal`: what no answer may have in it, for those who refuse with a status of success."""

    name: str
    server: Server
    requests: list[bytes]
    mark_of_refusal: bytes = b""

    @classmethod
    def of(cls, name: str, server: Server, key: str, requests: Iterable[Request]) -> Self:
        host = f"127.0.0.1:{server.port}"
        return cls(name, server, [request.wire(host, key) for request in requests])

    def measure(self, seconds: float, warm_up: float) -> Sample:
        told = msgspec.msgpack.encode(self.load(seconds, warm_up))
        return msgspec.json.decode(printed(["benchmarks.load"], cores.LOAD_CORE, told), type=Sample)

    def load(self, seconds: float, warm_up: float) -> Load:
        return Load(self.server.port, self.server.pid, self.requests, seconds, warm_up, self.mark_of_refusal)


@dataclass(frozen=True)
class Loop:
    """A module run as `python -m MODULE --database URL --connections N --seconds S --warm-up W`.

    It works for that long with N operations in flight and prints one `Sample` as JSON on standard output
    (`benchmarks.sample.sample` makes it). The database is its own: migrated and filled by tradepost with the
    same rows as the one that is served, but without the added stock.
    """

    name: str
    module: str
    database: str

    def measure(self, seconds: float, warm_up: float) -> Sample:
        figures = {"--connections": CONNECTIONS, "--seconds": seconds, "--warm-up": warm_up}
        options = [word for name, figure in figures.items() for word in (name, str(figure))]
        output = printed([self.module, "--database", self.database, *options], cores.SERVER_CORE)
        return msgspec.json.decode(output, type=Sample)


def printed(module: list[str], core: int, told: bytes = b"") -> bytes:
    """What a module prints in a process of its own; RuntimeError with its last words if it fails."""
    child = subprocess.Popen(
        [sys.executable, "-m", *module],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with child:
        try:
            cores.pin(child.pid, core)
            output, last_words = child.communicate(told)
        except BaseException:
            child.kill()
            raise
    if child.returncode:
        raise RuntimeError(f"{module[0]} failed:\n{last_words.decode()[-2_000:]}")
    return output
