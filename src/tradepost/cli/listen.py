"""`tradepost listen`: a local receiver of webhooks, which verifies each delivery and prints a line about it.

It answers as it is told, so that retries, timeouts and rotations can be watched; with `--register` it makes
itself an endpoint of a running service, and removes it at the end.
"""

import asyncio
import json
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Annotated, Any, NoReturn, TypeVar

import aiohttp
from aiohttp import web
from cyclopts import Parameter
from msgspec import DecodeError, Struct
from msgspec.json import decode

from tradepost.clock import Clock, instant
from tradepost.webhooks import VerificationError, verify

_T = TypeVar("_T")

_HANG = "hang"
_STATUS = re.compile(r"[2-5][0-9][0-9]")
_BASE = re.compile(r"https?://[^/?#\s]+(/[^?#\s]*)?")
_ANSWERS = f"a status from 200 to 599, or {_HANG}"
_UNVERIFIED = "401"
_HIGHEST_PORT = 65535
_SEEN_KEPT = 10_000
_SHOWN = 200  # characters of what a delivery says of itself
_ENDING_SECONDS = 1.0
_SERVICE_SECONDS = 10.0
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (an address somebody may choose)


class _Failed(Exception):
    """Why it cannot go on, as the one line that ends it."""


def listen(
    *,
    port: int = 8787,
    host: str = "127.0.0.1",
    secret: Annotated[list[str] | None, Parameter(negative="")] = None,
    answer: str = "204",
    register: str | None = None,
    key: Annotated[str | None, Parameter(env_var="TRADEPOST_KEY")] = None,
    events: Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")] = None,
    verbose: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Receive webhooks on this machine: verify each, print a line about it, answer it.

    A delivery to the path /500, /410, /hang, … is answered so, whatever --answer says; PUT /answer with such
    a word as its body changes the answer from then on. What cannot be verified is answered 401.

    Parameters
    ----------
    port
        The port to listen on; 0 for any that is free.
    host
        The address to listen on.
    secret
        A secret of the endpoint, as it was shown when it was made; once for each during a rotation.
    answer
        What deliveries are answered with: a status from 200 to 599, or hang.
    register
        The address of a running service, such as http://127.0.0.1:8000, to make an endpoint of until the end.
    key
        The API key for it; else that of the file var/key, which `make run` writes.
    events
        The types of events to register for: order.placed, 'order.*' …; every one unless told.
    verbose
        Print the body of each delivery too.
    """
    try:
        if not 0 <= port <= _HIGHEST_PORT:
            _fail(f"--port has to be from 0 to {_HIGHEST_PORT}, not {port}")
        if not _is_answer(answer):
            _fail(f"--answer has to be {_ANSWERS}, not {answer!r}")
        if not all(secret or ["-"]) or not (secret or register):
            _fail("give the endpoint's --secret whsec_…, or --register http://127.0.0.1:8000 to make one")
        service = _Service(_base(register), _key(key), _types(events)) if register else None
        with _bound(host, port) as open_:
            asyncio.run(_run(open_, Listener(secret or [], answer, verbose=verbose), service))
    except _Failed as failed:
        sys.exit(f"tradepost: {failed}")


def _fail(message: str) -> NoReturn:
    raise _Failed(message)


def _is_answer(text: str) -> bool:
    return text == _HANG or _STATUS.fullmatch(text) is not None


def _base(url: str) -> str:
    if not _BASE.fullmatch(url):
        _fail(f"--register has to be an address such as http://127.0.0.1:8000, not {url!r}")
    return url.rstrip("/")


def _key(given: str | None) -> str:
    return (given or "").strip() or _kept_key()


def _kept_key() -> str:
    from tradepost.cli.welcome import KEY_FILE  # noqa: PLC0415 (slow to load, and seldom needed)

    found = KEY_FILE.read_text("utf-8").strip() if KEY_FILE.is_file() else ""
    if not found:
        _fail(f"--register needs an API key: give --key, set TRADEPOST_KEY, or have it in {KEY_FILE}")
    return found


def _types(given: list[str] | None) -> list[str]:
    return [name for text in given or ["*"] for name in text.split(",")]


def _bound(host: str, port: int) -> socket.socket:
    """The socket to listen on. Who connects before it is served waits in its queue."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        _fail(f"{host}:{port} cannot be listened on ({error.strerror}); --port 0 takes any that is free")


def _address(open_: socket.socket) -> str:
    """Where the socket is reached from this machine."""
    host, port = open_.getsockname()[:2]
    host = _EVERYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Listener:
    """Answers deliveries, and says what came. `answer` is a status or `hang`, as text."""

    def __init__(self, secrets: Sequence[str], answer: str, *, verbose: bool) -> None:
        self.secrets = list(secrets)
        self._answer = answer
        self._verbose = verbose
        self._seen: dict[str, None] = {}
        self._ended = asyncio.Event()

    @asynccontextmanager
    async def serving(self, open_: socket.socket) -> AsyncIterator[None]:
        """Serves the socket until the block ends."""
        made = web.Application()
        made.router.add_put("/answer", self._change)
        made.router.add_post("/{path:.*}", self._deliver)
        runner = web.AppRunner(
            made,
            access_log=None,
            handler_cancellation=True,
            auto_decompress=False,
            shutdown_timeout=_ENDING_SECONDS,
        )
        await runner.setup()
        try:
            await web.SockSite(runner, open_).start()
            yield
        finally:
            self._ended.set()
            await runner.cleanup()

    async def _change(self, request: web.Request) -> web.Response:
        """PUT /answer."""
        text = (await request.read()).decode("ascii", "replace").strip()
        if not _is_answer(text):
            return web.Response(status=400, text=f"The body has to be {_ANSWERS}.\n")
        self._answer = text
        return web.Response(status=204)

    async def _deliver(self, request: web.Request) -> web.Response:
        body = await request.read()
        wrong = self._wrong(body, ", ".join(request.headers.getall("X-Signature-256", [])))
        path = request.path.removeprefix("/")
        answer = _UNVERIFIED if wrong else path if _is_answer(path) else self._answer
        self._say(body, wrong, answer)
        if answer == _HANG:
            await self._ended.wait()
            return web.Response(status=503)
        return web.Response(status=int(answer), text=f"{wrong}\n" if wrong else None)

    def _wrong(self, body: bytes, header: str) -> str:
        """Why a delivery is not to be trusted; empty if it is."""
        try:
            verify(body, header, self.secrets)
        except VerificationError as error:
            return str(error)
        return ""

    def _say(self, body: bytes, wrong: str, answer: str) -> None:
        said = _read(body)
        event: dict[str, Any] = said if isinstance(said, dict) else {}
        # What is wrong stands before the colon; behind it, what the author of a receiver can do.
        verdict = f"not verified: {wrong.partition(':')[0]}" if wrong else "verified"
        again = not wrong and self._came_before(str(event.get("id")))
        columns = (
            instant(Clock().now()),
            *(_plain(event.get(name, "-")) for name in ("type", "subject")),
            f"attempt {_plain(event.get('attempt', '-'))}",
            f"{verdict}, again" if again else verdict,
            "left hanging" if answer == _HANG else f"answered {answer}",
        )
        print("  ".join(columns), flush=True)
        if self._verbose:
            print(json.dumps(said, indent=2), flush=True)

    def _came_before(self, event_id: str) -> bool:
        if event_id in self._seen:
            return True
        self._seen[event_id] = None
        if len(self._seen) > _SEEN_KEPT:
            del self._seen[next(iter(self._seen))]
        return False


def _read(body: bytes) -> Any:
    """A body as the JSON it is, or as text; it may come from anybody."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def _plain(value: object) -> str:
    """A value on one line, in characters that do nothing to a terminal."""
    return json.dumps(str(value))[1:-1][:_SHOWN]


async def _run(open_: socket.socket, listener: Listener, service: "_Service | None") -> None:
    """Listens until a signal comes."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    address = _address(open_)
    async with AsyncExitStack() as stack:
        registered = ""
        if service is not None:
            endpoint = await stack.enter_async_context(service.endpoint(f"{address}/"))
            listener.secrets.append(endpoint.secret)
            registered = f", as endpoint {endpoint.id} of {service.base}"
        await stack.enter_async_context(listener.serving(open_))
        print(f"tradepost is listening on {address}{registered}", flush=True)
        await stopped.wait()


class _Made(Struct):
    """What is needed of the endpoint that was made."""

    id: str
    secret: str


class _BadMember(Struct):
    field: str
    message: str


class _Problem(Struct):
    """What is needed of a problem (RFC 9457) that the service answers."""

    detail: str = "nothing that tradepost would say"
    errors: list[_BadMember] = []


class _Service:
    """A running service in which an endpoint is made for as long as this runs."""

    def __init__(self, base: str, key: str, types: list[str]) -> None:
        self.base = base
        self._key = key
        self._types = types

    @asynccontextmanager
    async def endpoint(self, url: str) -> AsyncIterator[_Made]:
        """Makes the endpoint, and removes it when the block ends; raises `_Failed`."""
        wanted = {"url": url, "eventTypes": self._types, "description": "tradepost listen"}
        async with aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {self._key}"},
            timeout=aiohttp.ClientTimeout(total=_SERVICE_SECONDS),
        ) as session:
            status, body = await self._call(session, "POST", json=wanted)
            made = _decoded(body, _Made) if status == web.HTTPCreated.status_code else None
            if made is None:
                _fail(self._refusal(status, body))
            try:
                yield made
            finally:
                await self._remove(session, made.id)

    async def _remove(self, session: aiohttp.ClientSession, endpoint_id: str) -> None:
        try:
            status, body = await self._call(session, "DELETE", f"/{endpoint_id}")
            if status not in (web.HTTPNoContent.status_code, web.HTTPNotFound.status_code):
                _fail(self._refusal(status, body))
        except _Failed as failed:
            _fail(f"endpoint {endpoint_id} was not removed: {failed}")

    async def _call(
        self, session: aiohttp.ClientSession, method: str, below: str = "", **given: Any
    ) -> tuple[int, bytes]:
        url = f"{self.base}/v1/webhook-endpoints{below}"
        try:
            async with session.request(method, url, allow_redirects=False, **given) as answer:
                return answer.status, await answer.read()
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            _fail(f"no service answers at {self.base} ({str(error) or 'timed out'})")

    def _refusal(self, status: int, body: bytes) -> str:
        """What the service's problem means for whoever runs this."""
        problem = _decoded(body, _Problem) or _Problem()
        said = "; ".join(f"{each.field} {each.message}" for each in problem.errors) or problem.detail
        if status == web.HTTPUnauthorized.status_code:
            return f"{self.base} does not accept the API key; give another with --key or TRADEPOST_KEY"
        if any(each.field == "url" for each in problem.errors):
            return f"the service has to run with TRADEPOST_WEBHOOK_ALLOW_PRIVATE=1 ({said})"
        return f"{self.base} answered {status}: {said}"


def _decoded(body: bytes, kind: type[_T]) -> _T | None:
    try:
        return decode(body, type=kind)
    except DecodeError:
        return None
