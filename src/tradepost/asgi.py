"""The front door: a plain ASGI application that reads from top to bottom.

request → surface → answer → the fields every answer carries → the canonical log line
"""

import itertools
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tradepost.access.rate_limits import RateLimits
from tradepost.graphql.endpoint import ROUTE as GRAPHQL
from tradepost.graphql.endpoint import Endpoint
from tradepost.graphql.sockets import Sockets
from tradepost.http.answers import Answer, problem_answer
from tradepost.http.door import rate_headers
from tradepost.http.request import Disconnected, Receive, Request, Scope, Send
from tradepost.logs import Line, RequestLog, now_text
from tradepost.metrics import Metrics
from tradepost.problems import Internal, NotFound, Problem
from tradepost.rest.surface import Rest

_log = logging.getLogger("tradepost.asgi")

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")

_SCHEMES = {"ws": "http", "wss": "https"}
_BODILESS = (204, 304)
_FAILED = 500

Page = Callable[[Request], Awaitable[Answer]]


@dataclass
class Application:
    """All surfaces behind one door. `pages` are the documents, by their addresses."""

    rest: Rest
    graphql: Endpoint
    pages: dict[str, Page]
    limits: RateLimits
    log: RequestLog
    metrics: Metrics
    startup: Callable[[], Awaitable[None]]
    shutdown: Callable[[], Awaitable[None]]
    sockets: Sockets | None = None
    _process: str = field(default_factory=lambda: secrets.token_hex(6))
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(scope, receive)
            request.id = self._request_id(request)
            try:
                answer = await self._answer(request)
            except Disconnected:
                return
            took = time.perf_counter_ns() - request.started
            headers = self._headers(request, answer, took)
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            body = b"" if request.method == "HEAD" else answer.body
            await send({"type": "http.response.body", "body": body})
            self._note(request, answer, took)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await self._socket(scope, receive, send)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A WebSocket, from the request for an upgrade to its end."""
        scheme = _SCHEMES[scope.get("scheme", "ws")]
        request = Request({**scope, "method": "WEBSOCKET", "scheme": scheme}, receive)
        request.id = self._request_id(request)
        await receive()  # the request itself
        try:
            ended = await self._sockets_at(request).serve(request, receive, send)
        except Problem as problem:
            await self._refuse(self._problem(problem, request), request, send)
        except Exception:  # noqa: BLE001 (the last one to catch it; logged whole)
            _log.exception("unexpected failure", extra={"request_id": request.id, "path": request.path})
            internal = Internal("The failure was logged under this request's id")
            await self._refuse(self._problem(internal, request), request, send)
        else:
            took = time.perf_counter_ns() - request.started
            self._log_line(request, "socket", ended.code, took, ended.sent)

    def _sockets_at(self, request: Request) -> Sockets:
        if self.sockets is None or request.path != GRAPHQL:
            message = "There is no WebSocket at this path"
            raise NotFound(message)
        request.route = GRAPHQL
        return self.sockets

    async def _refuse(self, answer: Answer, request: Request, send: Send) -> None:
        """Answers the request for an upgrade, where the server can; else with its bare 403."""
        took = time.perf_counter_ns() - request.started
        if "websocket.http.response" in request.scope.get("extensions", {}):
            headers = self._headers(request, answer, took)
            await send({"type": "websocket.http.response.start", "status": answer.status, "headers": headers})
            await send({"type": "websocket.http.response.body", "body": answer.body})
        else:
            await send({"type": "websocket.close"})
        self._note(request, answer, took)

    async def _answer(self, request: Request) -> Answer:
        try:
            if request.path == GRAPHQL:
                return await self.graphql.answer(request)
            page = self.pages.get(request.path)
            return await (page(request) if page is not None else self.rest.answer(request))
        except Problem as problem:
            return self._problem(problem, request)
        except Disconnected:
            raise
        except Exception:  # noqa: BLE001 (the last one to catch it; logged whole)
            _log.exception("unexpected failure", extra={"request_id": request.id, "path": request.path})
            return self._problem(Internal("The failure was logged under this request's id"), request)

    def _problem(self, problem: Problem, request: Request) -> Answer:
        base_url = self.rest.base_url or request.base_url
        return problem_answer(problem, request, base_url, request.names)

    def _headers(self, request: Request, answer: Answer, took: int) -> list[tuple[bytes, bytes]]:
        headers = [
            *answer.headers,
            *request.more_headers,
            (b"x-request-id", request.id.encode()),
            (b"server-timing", b"db;dur=%.2f, total;dur=%.2f" % (request.use.nanoseconds / 1e6, took / 1e6)),
        ]
        if answer.status not in _BODILESS:
            headers.append((b"content-length", b"%d" % len(answer.body)))
        if request.verdict is not None:
            headers += rate_headers(self.limits.limit, request.verdict)
        return headers

    def _note(self, request: Request, answer: Answer, took: int) -> None:
        self.metrics.count(request.method, request.route, answer.status, took / 1e9)
        level = "info" if answer.status < _FAILED else "error"
        self._log_line(request, "request", answer.status, took, len(answer.body), level)

    def _log_line(
        self, request: Request, message: str, status: int, took: int, size: int, level: str = "info"
    ) -> None:
        self.log.add(
            Line(
                time=now_text(),
                level=level,
                message=message,
                method=request.method,
                path=request.path,
                route=request.route,
                status=status,
                ms=took / 1e6,
                db_ms=request.use.nanoseconds / 1e6,
                statements=request.use.statements,
                bytes=size,
                request_id=request.id,
                key=request.caller.key_id if request.caller else None,
                client=request.client,
            )
        )

    def _request_id(self, request: Request) -> str:
        """The caller's own id if it sent a sane one, else one of ours."""
        given = request.headers.get(b"x-request-id")
        if given is not None and _REQUEST_ID.fullmatch(given):
            return given.decode()
        return f"{self._process}-{next(self._numbers):x}"

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.startup()
        except Problem as problem:
            await send({"type": "lifespan.startup.failed", "message": problem.detail})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.shutdown()
        await send({"type": "lifespan.shutdown.complete"})
