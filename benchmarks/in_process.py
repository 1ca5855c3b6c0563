"""The application in this process, called as a server calls it."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stderr
from io import BytesIO, TextIOWrapper
from typing import Any
from uuid import uuid4

import msgspec

from benchmarks.client import RefusedError
from benchmarks.request import Request
from benchmarks.services import TRADEPOST
from tradepost import assembly, settings
from tradepost.asgi import Application
from tradepost.settings import Settings


@asynccontextmanager
async def running(database: str) -> AsyncIterator[tuple[Application, Settings, str]]:
    """An application on an empty database, with its settings and an administrator's key.

    It may deliver to loopback, but leaves deliveries to others. Its request log is dropped.
    """
    TRADEPOST.run(database, "migrate")
    key = TRADEPOST.new_key(database)
    encryption_key = base64.b64encode(bytes(range(32))).decode()
    given = {"deliveries": "0", "webhook_allow_private": "1", "encryption_key": encryption_key}
    found = settings.load({}, database_url=database, **given)
    application = assembly.assemble(found)
    with redirect_stderr(TextIOWrapper(BytesIO())):
        await application.startup()
        try:
            yield application, found, key
        finally:
            await application.shutdown()


class Caller:
    """Asks an application in process, as a server does."""

    def __init__(self, application: Application, key: str) -> None:
        self._application = application
        self._key = key

    async def made(self, path: str, body: object) -> str:
        """The id of what a POST made."""
        answer = await self.ask(Request("POST", path, msgspec.json.encode(body)))
        return str(msgspec.json.decode(answer)["id"])

    async def ask(self, request: Request) -> bytes:
        """RefusedError unless the answer is 2xx."""
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": request.body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self._application(self._scope(request), receive, send)
        status, body = sent[0]["status"], sent[1]["body"]
        if status not in range(200, 300):
            raise RefusedError(f"{request.method} {request.target}: {status} {body!r}")
        return bytes(body)

    def _scope(self, request: Request) -> dict[str, Any]:
        path, _, query = request.target.partition("?")
        headers = {"Host": "shop.example", "Idempotency-Key": str(uuid4()), **request.headers(self._key)}
        return {
            "type": "http",
            "method": request.method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 40_000),
        }
