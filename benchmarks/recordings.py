"""The answers of a running service, one per distinct request, for the ceiling to give again."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchmarks.client import Client
from benchmarks.request import Request

_ADDED_BY_UVICORN = frozenset({"date", "server", "connection", "keep-alive"})


class Recording(msgspec.Struct, frozen=True):
    method: str
    target: str
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def record(client: Client, requests: Iterable[Request], file: Path) -> None:
    """Asks once per method and target; of several bodies for one target the first is sent."""
    distinct = {(request.method, request.target): request for request in reversed(list(requests))}
    file.write_bytes(msgspec.msgpack.encode([_recorded(client, request) for request in distinct.values()]))


def recorded(file: Path) -> list[Recording]:
    return msgspec.msgpack.decode(file.read_bytes(), type=list[Recording])


def _recorded(client: Client, request: Request) -> Recording:
    answer = client.send(request)
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in answer.headers
        if name.lower() not in _ADDED_BY_UVICORN
    ]
    return Recording(request.method, request.target, answer.status, headers, answer.body)
