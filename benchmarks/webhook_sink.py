"""The sink: a receiver of webhooks as cheap as can be, in a process of its own on the core of the load.

It answers 204 to every POST and notes when it came: at once, or after a while to those whose path begins
with SLOW; those to HANGING it never answers. What it has noted is read over the same port. Times are those
of `time.perf_counter`, the same in all processes.
"""

import argparse
import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sys import executable
from time import monotonic, perf_counter, sleep
from typing import cast

import msgspec
import uvloop

from benchmarks import cores
from benchmarks.client import Client
from benchmarks.request import Request
from benchmarks.servers import Probe, free_port, serving

HANGING = "/hanging"
SLOW = "/slow/"
SLOW_SECONDS = 0.3
_LOOK_SECONDS = 0.02
_LIMIT = 120.0
_POST = b"POST "
_TO_HANGING = b"POST /hanging "
_TO_SLOW = b"POST /slow/"
_ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
_LENGTH = b"\r\ncontent-length:"
_EVENT = b"\r\nwebhook-id:"
_COUNT = Request("GET", "/count")
_TAKE = Request("GET", "/arrivals")


class Arrival(msgspec.Struct, frozen=True, array_like=True):
    """A delivery as it came; `length` is that of its body in bytes."""

    at: float
    path: str
    event_id: str
    subject: str
    length: int


class Noted:
    """What has come, as it came: it is read apart when somebody asks for it."""

    def __init__(self) -> None:
        self.requests: list[tuple[float, bytes]] = []

    def take(self) -> list[Arrival]:
        taken, self.requests = self.requests, []
        return [_arrival(at, request) for at, request in taken]


class Receiver(asyncio.Protocol):
    def __init__(self, noted: Noted) -> None:
        self._noted = noted
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        while (end := self._unread.find(b"\r\n\r\n")) >= 0:
            length = _field(self._unread[: end + 2], _LENGTH)
            end += 4 + int(length or 0)
            if len(self._unread) < end:
                return
            request, self._unread = self._unread[:end], self._unread[end:]
            self._receive(request)

    def _receive(self, request: bytes) -> None:
        if request.startswith(_TO_HANGING):
            return
        if request.startswith(_POST):
            self._noted.requests.append((perf_counter(), request))
            if request.startswith(_TO_SLOW):
                asyncio.get_running_loop().call_later(SLOW_SECONDS, self._transport.write, _ANSWER)
            else:
                self._transport.write(_ANSWER)
            return
        counted = request.startswith(f"GET {_COUNT.target} ".encode())
        body = msgspec.msgpack.encode(len(self._noted.requests) if counted else self._noted.take())
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


class Sink:
    """The running sink, as whoever measures sees it."""

    def __init__(self, port: int, pid: int, client: Client) -> None:
        self.port = port
        self.pid = pid
        self._client = client

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def count(self) -> int:
        """How many have come since they were taken."""
        return msgspec.msgpack.decode(self._client.send(_COUNT).body, type=int)

    def wait_for(self, count: int) -> None:
        """RuntimeError if fewer have come within two minutes."""
        deadline = monotonic() + _LIMIT
        while (come := self.count()) < count:
            if monotonic() > deadline:
                raise RuntimeError(f"of {count} deliveries {come} came within {_LIMIT:g} s")
            sleep(_LOOK_SECONDS)

    def take(self) -> list[Arrival]:
        """What has come, and no more of it afterwards."""
        return msgspec.msgpack.decode(self._client.send(_TAKE).body, type=list[Arrival])


@contextmanager
def sinking(folder: Path) -> Iterator[Sink]:
    port = free_port()
    command = [executable, "-m", "benchmarks.webhook_sink", "--port", str(port)]
    log = folder / "webhook sink.log"
    with (
        serving(command, {}, Probe(port, _COUNT, ""), log, core=cores.LOAD_CORE) as server,
        Client(port, "") as client,
    ):
        yield Sink(port, server.pid, client)


def _arrival(at: float, request: bytes) -> Arrival:
    head, _, body = request.partition(b"\r\n\r\n")
    path = head.split(b" ", 2)[1].decode()
    event_id = _field(head + b"\r\n", _EVENT).decode()
    subject = msgspec.json.decode(body).get("subject", "")
    return Arrival(at, path, event_id, subject, len(body))


def _field(head: bytes, name: bytes) -> bytes:
    """Of a head that ends with its last line's end; empty if it has none."""
    start = head.lower().find(name)
    if start < 0:
        return b""
    start += len(name)
    return head[start : head.index(b"\r", start)].strip()


async def _receive(port: int) -> None:
    noted = Noted()
    server = await asyncio.get_running_loop().create_server(lambda: Receiver(noted), "127.0.0.1", port)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    gc.disable()
    uvloop.run(_receive(parser.parse_args().port))


if __name__ == "__main__":
    main()
