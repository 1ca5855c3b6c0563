"""The service under test: the production assembly, called through ASGI, on an event loop of its own."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

from sqlalchemy import ClauseElement, text

from tradepost import settings
from tradepost.actions.api_keys import ApiKeys
from tradepost.actions.change import Change
from tradepost.asgi import Application
from tradepost.assembly import assemble
from tradepost.cli.store import OPERATOR
from tradepost.storage.database import Writing
from tradepost.storage.statement import Statement

T = TypeVar("T")

ENCRYPTION_KEY = "c2hvcCBzaG9wIHNob3Agc2hvcCBzaG9wIHNob3Agc2g="


class Reply(NamedTuple):
    """What came back: header names in lower case, `lines` with every line of each."""

    status: int
    headers: dict[str, str]
    lines: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Service:
    """A running service and its operator's key."""

    def __init__(self, database_url: str, *, migration: Sequence[str] = (), **options: Any) -> None:
        given = {
            name: value for name, value in options.items() if name in settings.Settings.__dataclass_fields__
        }
        assembly = {name: value for name, value in options.items() if name not in given}
        usual = {"rate_limit": "100000/second", "deliveries": "0", "encryption_key": ENCRYPTION_KEY}
        found = settings.load({}, **{"database_url": database_url, **usual, **given})
        self.settings = found
        self.engine = database_url.partition(":")[0]
        self.database_url = database_url
        self.lines: list[bytes] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.app: Application = assemble(found, **assembly)
        self.app.log._write = self.lines.append
        try:
            self.run(self.app.startup())
        except BaseException:
            self._end()
            raise
        for sql in migration:
            self.run(self._execute(text(sql)))
        self.key = self.new_key("admin")

    def stop(self) -> None:
        self.run(self.app.shutdown())
        self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T] | Awaitable[T]) -> T:
        """Runs a coroutine on the service's loop and waits for it."""
        return self.begin(work).result(timeout=60)

    def begin(self, work: Coroutine[Any, Any, T] | Awaitable[T]) -> "Future[T]":
        async def awaited() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(awaited(), self._loop)

    def new_key(self, *scopes: str, user: str | None = None, expires: str | None = None) -> str:
        """A key as `tradepost keys create` makes it."""
        values = {"name": "test", "scopes": list(scopes), "user_id": user, "expires_at": expires}

        async def action(change: Change) -> str:
            await ApiKeys().create(change, values)
            return change.revealed["key"]

        performer = self.app.rest.performer
        return self.run(performer.perform(OPERATOR, None, action, source="")).result

    def call(
        self, method: str, path: str, body: Any = None, *, key: str | None = "", **headers: str
    ) -> Reply:
        """One request. `body` is sent as JSON unless it is bytes; `key=None` sends no credentials.

        Header names are keyword arguments with underscores: `if_match='"1"'`.
        """
        return self.run(self._call(method, path, body, key, headers))

    def calls(self, *requests: tuple[Any, ...], **headers: str) -> list[Reply]:
        """Requests at once: each (method, path) or (method, path, body)."""

        async def one(method: str, path: str, body: Any = None) -> Reply:
            return await self._call(method, path, body, "", headers)

        async def all_() -> list[Reply]:
            return await asyncio.gather(*[one(*each) for each in requests])

        return self.run(all_())

    def get(self, path: str, **headers: Any) -> Reply:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any, **headers: Any) -> Reply:
        return self.call("POST", path, body, **headers)

    def made(self, path: str, body: Any, **headers: Any) -> Any:
        """What a POST made; fails the test if it made nothing."""
        reply = self.post(path, body, **headers)
        assert reply.status == 201, reply
        return reply.json

    def rows(self, sql: str) -> list[Any]:
        """What the database itself holds."""

        async def work(tx: Writing) -> list[Any]:
            return list(await tx.rows(Statement("what a test looks at", text(sql))))

        return self.run(self.app.rest.performer.database.write(work))

    def call_slowly(self, method: str, path: str, begun: bytes = b"{") -> Reply:
        """A request whose body is announced, begins so, and never arrives."""
        headers = {"content-type": "application/json", "content-length": "10", "host": "shop.example"}
        sent = headers | {"authorization": f"Bearer {self.key}"}
        scope = {
            "type": "http",
            "method": method,
            "scheme": "http",
            "path": path,
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "client": ("192.0.2.1", 40000),
        }
        return self.run(_exchange(self.app, scope, begun, ends=False))

    async def _execute(self, clause: ClauseElement) -> None:
        async def work(tx: Writing) -> None:
            await tx.row(Statement("what a test needs", clause))

        await self.app.rest.performer.database.write(work)

    async def _call(
        self, method: str, path: str, body: Any, key: str | None, headers: Mapping[str, str]
    ) -> Reply:
        path, _, query = path.partition("?")
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"host": "shop.example", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body is not None:
            kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
            sent = {"content-type": kind, "content-length": str(len(raw)), **sent}
        if key is not None:
            sent.setdefault("authorization", f"Bearer {key or self.key}")
        scope = {
            "type": "http",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in sent.items()],
            "client": ("192.0.2.1", 40000),
        }
        return await _exchange(self.app, scope, raw)


async def _exchange(
    app: Callable[..., Awaitable[None]], scope: dict[str, Any], body: bytes, *, ends: bool = True
) -> Reply:
    sent: list[Any] = []
    pieces = iter([body] if body or ends else [])

    async def receive() -> dict[str, Any]:
        for piece in pieces:
            return {"type": "http.request", "body": piece, "more_body": not ends}
        return await asyncio.Future()

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    lines = [(name.decode(), value.decode("latin-1")) for name, value in sent[0]["headers"]]
    headers: dict[str, str] = {}
    for name, value in lines:
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return Reply(sent[0]["status"], headers, lines, b"".join(message["body"] for message in sent[1:]))
