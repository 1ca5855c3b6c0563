"""A receiver of tradepost's webhooks: verify, keep, acknowledge; work on it afterwards.

    WEBHOOK_SECRETS="whsec_…" python -m examples.webhook_receiver.receiver inbox.db 8787

An event is in a database before it is acknowledged with 204, so that a crash loses none. Its id is the key:
what comes a second time is acknowledged, and not worked on again. A thread works through what was kept, in
the order of its coming, and goes on after a restart where it was.
"""

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from tradepost.webhooks import VerificationError, verify  # or a copy of tradepost/webhooks/signature.py

MAX_BODY = 1 << 20
KEPT_DAYS = 35  # longer than the service can send an event again
SCHEMA = """CREATE TABLE IF NOT EXISTS inbox (number INTEGER PRIMARY KEY, id TEXT UNIQUE, body TEXT,
at TEXT DEFAULT CURRENT_TIMESTAMP, done INTEGER DEFAULT 0)"""


class Inbox:
    """The events that were acknowledged, and the thread that works through them."""

    def __init__(self, path: str, work: Callable[[dict[str, Any]], None]) -> None:
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._lock = Lock()  # the connection is shared by the threads that answer and the one that works
        self._sql(SCHEMA)
        self._work = work
        self._queue: SimpleQueue[str | None] = SimpleQueue()
        for (event_id,) in self._sql("SELECT id FROM inbox WHERE NOT done ORDER BY number"):
            self._queue.put(event_id)
        self._thread = Thread(target=self._run)
        self._thread.start()

    def keep(self, event: dict[str, Any]) -> None:
        """Returns once the event is on the disk; nothing more happens if it was there before."""
        kept = "INSERT INTO inbox (id, body) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id"
        if self._sql(kept, event["id"], json.dumps(event)):
            self._queue.put(event["id"])

    def close(self) -> None:
        """Ends when what was kept so far is worked on."""
        self._queue.put(None)
        self._thread.join()
        self._database.close()

    def _run(self) -> None:
        while (event_id := self._queue.get()) is not None:
            ((body,),) = self._sql("SELECT body FROM inbox WHERE id = ?", event_id)
            try:
                self._work(json.loads(body))
            except Exception as error:  # noqa: BLE001 (one bad event does not hold up the others)
                print(f"{event_id} failed, and is tried again at the next start: {error!r}", flush=True)
                continue
            self._sql("UPDATE inbox SET done = 1 WHERE id = ?", event_id)
            self._sql("DELETE FROM inbox WHERE done AND at < datetime('now', ?)", f"-{KEPT_DAYS} days")

    def _sql(self, sql: str, *values: str) -> list[Any]:
        with self._lock:
            return self._database.execute(sql, values).fetchall()


class Handler(BaseHTTPRequestHandler):
    """Answers a delivery: 204 once it is kept, 401 if it cannot be trusted."""

    protocol_version = "HTTP/1.1"  # connections are kept, which saves the sender time
    timeout = 30  # seconds that a connection may be silent
    inbox: Inbox
    secrets: tuple[str, ...]

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY:
            self.close_connection = True
            return self._answer(413)
        body = self.rfile.read(int(length))
        try:
            event = verify(body, self.headers["X-Signature-256"], self.secrets)
        except VerificationError as error:
            return self._answer(401, str(error))
        self.inbox.keep(event)
        return self._answer(204)

    def _answer(self, status: int, text: str = "") -> None:
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


def server(inbox: Inbox, secrets: tuple[str, ...], port: int) -> ThreadingHTTPServer:
    """Listens on 127.0.0.1; in earnest, behind a proxy that does TLS."""
    bound = type("Bound", (Handler,), {"inbox": inbox, "secrets": secrets})
    return ThreadingHTTPServer(("127.0.0.1", port), bound)


def main(*words: str) -> None:
    """Serves until SIGINT or SIGTERM; ends with a line if it cannot."""
    if len(words) != 2 or not words[1].isdecimal():
        sys.exit("usage: WEBHOOK_SECRETS=whsec_… python -m examples.webhook_receiver.receiver inbox.db 8787")
    secrets = tuple(os.environ.get("WEBHOOK_SECRETS", "").split())
    if not secrets:
        sys.exit(
            "set WEBHOOK_SECRETS to the endpoint's secret; during a rotation to both, with a space between"
        )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with closing(Inbox(words[0], work)) as inbox:
        try:
            with server(inbox, secrets, int(words[1])) as serving:
                serving.serve_forever()
        except KeyboardInterrupt:
            return
        except (OSError, OverflowError) as error:
            sys.exit(f"cannot listen on port {words[1]}: {error}")


def work(event: dict[str, Any]) -> None:
    """What the receiver is there for."""
    print("working on", event["type"], event["subject"], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
