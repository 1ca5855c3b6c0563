"""A receiver of webhooks in threads of its own, that keeps what it gets and when."""

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

WAIT = 30.0


class Arrival(NamedTuple):
    """A request that came, and when (monotonic seconds)."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def event(self) -> Any:
        return json.loads(self.body)

    @property
    def key(self) -> tuple[str, str, int]:
        """To whom, what, and which attempt."""
        return self.path, str(self.event["id"]), int(self.event["attempt"])


class Receiver:
    """Answers 204 unless `answer` says otherwise; what comes to a path in `hanging` waits to be released."""

    def __init__(self, answer: Callable[[Arrival], int] = lambda _: 204) -> None:
        self.got: list[Arrival] = []
        self.hanging: set[str] = set()
        self._answer = answer
        self._more = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(WAIT)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def at(self, path: str) -> list[str]:
        """The ids of what came to a path, in the order in which it came."""
        return [str(each.event["id"]) for each in list(self.got) if each.path == path]

    def wait(self, holds: Callable[[], bool]) -> bool:
        """Waits for what comes until something holds; whether it does."""
        with self._more:
            return self._more.wait_for(holds, WAIT)

    def release(self) -> None:
        """Nothing hangs any more."""
        self.hanging.clear()
        self.nudge()

    def nudge(self) -> None:
        """Whoever waits looks again."""
        with self._more:
            self._more.notify_all()

    def came(self, arrival: Arrival) -> int:
        """Keeps a request; the status to answer with, once it is to be answered."""
        with self._more:
            self.got.append(arrival)
            self._more.notify_all()
            self._more.wait_for(lambda: arrival.path not in self.hanging)
        return self._answer(arrival)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], receiver: Receiver) -> None:
        super().__init__(address, _Handler)
        self.receiver = receiver

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who was killed cannot hear the answer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.send_response(self.server.receiver.came(Arrival(self.path, headers, body, time.monotonic())))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Says nothing."""
