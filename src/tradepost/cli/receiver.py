"""The webhook receiver of `tradepost listen`: verifies, prints and answers each delivery."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from tradepost.clock import Clock, instant
from tradepost.webhooks import VerificationError, verify

RESPONSES = "a status from 200 to 599, or hang"
_HANG = "hang"
_STATUS = re.compile(r"[2-5][0-9][0-9]")
_UNVERIFIED = "401"
_REMEMBERED_IDS = 10_000
_COLUMN_CHARACTERS = 200
_SHUTDOWN_SECONDS = 1.0


def is_response(text: str) -> bool:
    """Whether a text is one of `RESPONSES`."""
    return text == _HANG or _STATUS.fullmatch(text) is not None


class LocalReceiver:
    """Answers deliveries with `response`, one of `RESPONSES`, and prints what arrived."""

    def __init__(self, secrets: Sequence[str], response: str, *, verbose: bool) -> None:
        self.secrets = list(secrets)
        self._response = response
        self._verbose = verbose
        self._seen: dict[str, None] = {}
        self._stopping = asyncio.Event()

    @asynccontextmanager
    async def serving(self, listening: socket.socket) -> AsyncIterator[None]:
        """Serves on a listening socket until the block ends."""
        application = web.Application()
        application.router.add_put("/answer", self._change)
        application.router.add_post("/{path:.*}", self._receive)
        runner = web.AppRunner(
            application,
            access_log=None,
            handler_cancellation=True,
            auto_decompress=False,
            shutdown_timeout=_SHUTDOWN_SECONDS,
        )
        await runner.setup()
        try:
            await web.SockSite(runner, listening).start()
            yield
        finally:
            self._stopping.set()
            await runner.cleanup()

    async def _change(self, request: web.Request) -> web.Response:
        """PUT /answer."""
        text = (await request.read()).decode("ascii", "replace").strip()
        if not is_response(text):
            return web.Response(status=400, text=f"The body must be {RESPONSES}.\n")
        self._response = text
        return web.Response(status=204)

    async def _receive(self, request: web.Request) -> web.Response:
        body = await request.read()
        failure = self._verify(body, ", ".join(request.headers.getall("X-Signature-256", [])))
        path = request.path.removeprefix("/")
        response = _UNVERIFIED if failure else path if is_response(path) else self._response
        self._print(body, failure, response)
        if response == _HANG:
            await self._stopping.wait()
            return web.Response(status=503)
        return web.Response(status=int(response), text=f"{failure}\n" if failure else None)

    def _verify(self, body: bytes, header: str) -> str:
        """Why verification failed; empty if it succeeded."""
        try:
            verify(body, header, self.secrets)
        except VerificationError as error:
            return str(error)
        return ""

    def _print(self, body: bytes, failure: str, response: str) -> None:
        content = _content(body)
        event: dict[str, Any] = content if isinstance(content, dict) else {}
        # The part after the colon is advice for authors of receivers.
        verdict = f"not verified: {failure.partition(':')[0]}" if failure else "verified"
        repeated = not failure and self._seen_before(str(event.get("id")))
        columns = (
            instant(Clock().now_ms()),
            *(_printable(event.get(name, "-")) for name in ("type", "subject")),
            f"attempt {_printable(event.get('attempt', '-'))}",
            f"{verdict}, again" if repeated else verdict,
            "left hanging" if response == _HANG else f"answered {response}",
        )
        print("  ".join(columns), flush=True)
        if self._verbose:
            print(json.dumps(content, indent=2), flush=True)

    def _seen_before(self, event_id: str) -> bool:
        if event_id in self._seen:
            return True
        self._seen[event_id] = None
        if len(self._seen) > _REMEMBERED_IDS:
            del self._seen[next(iter(self._seen))]
        return False


def _content(body: bytes) -> Any:
    """The body parsed as JSON, or as text if it is not JSON; anybody may have sent it."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def _printable(value: object) -> str:
    """A value on one line, with control characters escaped, so that it cannot affect the terminal."""
    return json.dumps(str(value))[1:-1][:_COLUMN_CHARACTERS]
