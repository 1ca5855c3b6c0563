"""The front door: a plain ASGI application that reads from top to bottom.

request → surface → exchange → the fields that every answer has → the canonical log line
"""

import itertools
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tradepost.access.rate_limits import RateLimits
from tradepost.graphql.endpoint import ROUTE as GRAPHQL
from tradepost.graphql.endpoint import Endpoint
from tradepost.graphql.sockets import Sockets
from tradepost.http.access_control import rate_headers
from tradepost.http.exchange import Exchange, Handler, failure_answer
from tradepost.http.request import Disconnected, Receive, Request, Scope, Send
from tradepost.logs import Line, RequestLog, now_text
from tradepost.metrics import Metrics
from tradepost.problems import NotFound, Problem
from tradepost.rest.surface import Rest

_SCHEMES = {"ws": "http", "wss": "https"}
_BODILESS = (204, 304)
_FAILED = 500


@dataclass
class Application:
    """All surfaces behind one door. `documents` are the public documents, by their paths."""

    rest: Rest
    graphql: Endpoint
    documents: dict[str, Handler]
    limits: RateLimits
    log: RequestLog
    metrics: Metrics
    startup: Callable[[], Awaitable[None]]
    shutdown: Callable[[], Awaitable[None]]
    sockets: Sockets | None = None
    base_url: str | None = None
    _process: str = field(default_factory=lambda: secrets.token_hex(6))
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = self._request(scope, receive)
            try:
                exchange = await self._handler(request.path)(request)
            except Disconnected:
                return
            took_ns = time.perf_counter_ns() - request.started
            answer, headers = exchange.answer, self._headers(request, exchange, took_ns)
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            body = b"" if request.method == "HEAD" else answer.body
            await send({"type": "http.response.body", "body": body})
            self._note(request, exchange, took_ns)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await self._socket(scope, receive, send)

    def _request(self, scope: Scope, receive: Receive) -> Request:
        return Request(scope, receive, f"{self._process}-{next(self._numbers):x}", self.base_url)

    def _handler(self, path: str) -> Handler:
        if path == GRAPHQL:
            return self.graphql.answer
        return self.documents.get(path) or self.rest.answer

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A WebSocket, from the request for an upgrade to its end."""
        scheme = _SCHEMES[scope.get("scheme", "ws")]
        request = self._request({**scope, "method": "WEBSOCKET", "scheme": scheme}, receive)
        await receive()  # the request itself
        try:
            ended = await self._sockets_at(request.path).serve(request, receive, send)
        except Exception as failure:  # noqa: BLE001 (each has its answer; an unexpected one is logged)
            route = GRAPHQL if request.path == GRAPHQL else ""
            await self._refuse(request, Exchange(failure_answer(failure, request), route), send)
        else:
            took_ns = time.perf_counter_ns() - request.started
            self._log_line(
                request,
                took_ns,
                level="info",
                message="socket",
                route=GRAPHQL,
                status=ended.code,
                bytes=ended.sent,
                key=ended.caller.key_id if ended.caller else None,
            )

    def _sockets_at(self, path: str) -> Sockets:
        if self.sockets is None or path != GRAPHQL:
            message = "There is no WebSocket at this path"
            raise NotFound(message)
        return self.sockets

    async def _refuse(self, request: Request, exchange: Exchange, send: Send) -> None:
        """Answers the request for an upgrade, if the server can; else with a bare 403."""
        took_ns = time.perf_counter_ns() - request.started
        if "websocket.http.response" in request.scope.get("extensions", {}):
            headers = self._headers(request, exchange, took_ns)
            status = exchange.answer.status
            await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
            await send({"type": "websocket.http.response.body", "body": exchange.answer.body})
        else:
            await send({"type": "websocket.close"})
        self._note(request, exchange, took_ns)

    def _headers(self, request: Request, exchange: Exchange, took_ns: int) -> list[tuple[bytes, bytes]]:
        answer, admission = exchange.answer, exchange.admission
        headers = [
            *answer.headers,
            (b"x-request-id", request.id.encode()),
            (
                b"server-timing",
                b"db;dur=%.2f, total;dur=%.2f" % (request.use.nanoseconds / 1e6, took_ns / 1e6),
            ),
        ]
        if answer.status not in _BODILESS:
            headers.append((b"content-length", b"%d" % len(answer.body)))
        if admission is not None and admission.verdict is not None:
            headers += rate_headers(self.limits.limit, admission.verdict)
        return headers

    def _note(self, request: Request, exchange: Exchange, took_ns: int) -> None:
        answer, admission = exchange.answer, exchange.admission
        self.metrics.count(request.method, exchange.route, answer.status, took_ns / 1e9)
        self._log_line(
            request,
            took_ns,
            level="info" if answer.status < _FAILED else "error",
            message="request",
            route=exchange.route,
            status=answer.status,
            bytes=len(answer.body),
            key=admission.caller.key_id if admission and admission.caller else None,
        )

    def _log_line(self, request: Request, took_ns: int, **fields: Any) -> None:
        self.log.add(
            Line(
                time=now_text(),
                method=request.method,
                path=request.path,
                ms=took_ns / 1e6,
                db_ms=request.use.nanoseconds / 1e6,
                statements=request.use.statements,
                request_id=request.id,
                client=request.client,
                **fields,
            )
        )

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
