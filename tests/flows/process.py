"""The real program as a process of its own, and raw sockets to it."""

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.flows.forked import Forked
from tradepost.cli.keys import make
from tradepost.cli.store import opened
from tradepost.settings import load

COMMAND = Path(sys.executable).with_name("tradepost")
# Settings somebody has in the shell; and what has each of a hundred processes compile the program anew.
_LEFT_OUT = ("TRADEPOST_", "PYTHONDONTWRITEBYTECODE")
_ADDRESS = re.compile(r"serving on http://[^:]+:(\d+)")


class Child:
    """A command of the program that runs until it is told to end; `errors` is what it says meanwhile."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        self.environment = environment
        self._child = Forked(environment, *arguments)
        self.errors: list[str] = []
        self._said = threading.Condition()
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._child.pid

    def _read_errors(self) -> None:
        for line in self._child.errors:
            with self._said:
                self.errors.append(line)
                self._said.notify_all()

    def hear(self, words: str) -> None:
        """Waits until it has said something."""
        with self._said:
            assert self._said.wait_for(lambda: any(words in line for line in self.errors), 30), self.errors

    def end(self, number: int = signal.SIGTERM) -> int:
        """Sends a signal and waits for the end; the exit status."""
        self._child.send(number)
        status = self._child.wait()
        self._reader.join(timeout=10)
        with self._child:
            return status


class Process(Child):
    """A running `tradepost serve`, with the key of an operator; on a free port unless told."""

    def __init__(self, database_url: str, *arguments: str, port: int = 0, **settings: str) -> None:
        given = environment(database_url, **settings)
        self.key = asyncio.run(_new_key(given))
        super().__init__(given, "serve", "--port", str(port), *arguments)
        line = self._child.out.readline()
        found = _ADDRESS.search(line)
        assert found, (line, self.errors)
        self.port = int(found[1])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def say(self, data: bytes) -> bytes:
        """Sends raw bytes and reads until the server closes or has answered once."""
        with self.connect() as open_:
            try:
                open_.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                return b""
            return read_answer(open_)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """One request on a connection of its own; status and JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            return self.call_on(connection, method, path, body, **headers)
        finally:
            connection.close()

    def call_on(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        sent = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None


async def _new_key(environment: dict[str, str]) -> str:
    """The key of an operator, made here: a command of its own takes as long as the start of the service."""
    async with opened(load(environment)) as performer:
        return await make(performer, {"name": "a test's", "scopes": ["admin"]})


def environment(database_url: str, **settings: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_LEFT_OUT)}
    ours = {f"TRADEPOST_{name.upper()}": value for name, value in settings.items()}
    return {**kept, "TRADEPOST_DATABASE_URL": database_url, "TRADEPOST_RATE_LIMIT": "100000/second", **ours}


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of the program, to its end."""
    done = subprocess.run(
        [COMMAND, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def read_answer(open_: socket.socket) -> bytes:
    """All that comes until the head and the body it announces are there, or the connection ends."""
    received = b""
    try:
        while chunk := open_.recv(65536):
            received += chunk
            head, separator, body = received.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            if separator and length and len(body) >= int(length[1]):
                break
    except (ConnectionResetError, TimeoutError):
        pass
    return received


@contextmanager
def serving(database_url: str, *arguments: str, port: int = 0, **settings: str) -> Iterator[Process]:
    """A process that ends with the block, however the block ends."""
    process = Process(database_url, *arguments, port=port, **settings)
    try:
        yield process
    finally:
        process.end()
