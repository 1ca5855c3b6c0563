"""A plain client for what happens outside the measured time: filling, looking up ids, recording answers."""

import http.client
from dataclasses import dataclass
from typing import Any, Self

import msgspec

from benchmarks.request import Request


class RefusedError(Exception):
    """A service answered something other than 2xx, so that nothing measured of it would mean anything."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Client:
    def __init__(self, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._key = key

    def send(self, request: Request) -> Answer:
        """RefusedError unless the answer is 2xx."""
        body = request.body or None
        self._connection.request(request.method, request.target, body, request.headers(self._key))
        response = self._connection.getresponse()
        answer = Answer(response.status, response.getheaders(), response.read())
        if answer.status not in range(200, 300):
            raise RefusedError(f"{request.method} {request.target}: {answer.status} {answer.body[:600]!r}")
        return answer

    def get(self, target: str) -> dict[str, Any]:
        return msgspec.json.decode(self.send(Request("GET", target)).body, type=dict[str, Any])

    def patch(self, target: str, change: object) -> None:
        self.send(Request("PATCH", target, msgspec.json.encode(change)))

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
