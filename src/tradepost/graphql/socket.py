"""One WebSocket that speaks `graphql-transport-ws`, and the operations on it.

Each operation is a task of its own. Nothing is queued: a result that cannot be sent yet waits in the
operation that has it, so the results that a client leaves unread are bounded in bytes and by the number of
its operations. A client that reads nothing at all is disconnected.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from tradepost.access.caller import Caller
from tradepost.graphql import transport_ws
from tradepost.graphql.errors import RATE_LIMITED, Refused, refusal, unexpected
from tradepost.graphql.request import GraphQLRequest
from tradepost.graphql.transport_ws import SUBPROTOCOL, Closing
from tradepost.http.request import Receive, Request, Send
from tradepost.problems import Problem, Unauthenticated

_log = logging.getLogger("tradepost.graphql")

CONNECTION = "tradepost.connection"  # the extension in which the server passes a `SocketConnection`

_MAX_OPERATIONS = 100  # of a socket at a time
_MAX_UNREAD = 8 << 20  # bytes of results that wait for one client to read
_CLOSE_SECONDS = 5.0

DROPPED = Closing(transport_ws.TRY_AGAIN_LATER, dropped=True)

Push = Callable[[bytes], Awaitable[None]]


class OperationRunner(Protocol):
    """Identifies callers and runs their operations."""

    async def caller(self, authorization: bytes | None) -> Caller:
        """The caller with these credentials; raises `Unauthenticated`."""

    async def run(self, caller: Caller, request: GraphQLRequest, upgrade: Request, push: Push) -> None:
        """Runs an operation to its end and pushes each result as JSON; `upgrade` opened the socket.

        Raises `Refused` for a request error, before it pushes anything. It is cancelled when the client
        completes the operation or the socket ends.
        """


class SocketConnection(Protocol):
    """The connection below a socket; `writable` is clear while the client reads more slowly than we write."""

    writable: asyncio.Event
    transport: asyncio.Transport


class SocketOwner(Protocol):
    """What a socket needs to know and report: `Sockets`, which owns it."""

    runner: OperationRunner
    init_seconds: float
    stuck_seconds: float

    async def admit(self, socket: "GraphQLSocket", authorization: bytes) -> None: ...

    def hold(self, size: int) -> None: ...

    def release(self, size: int) -> None: ...


class GraphQLSocket:
    """A socket. `sent` and `unread` are bytes of messages."""

    __slots__ = (
        "_cancelled",
        "_connection",
        "_ending",
        "_main",
        "_owner",
        "_progressed_at",
        "_receive",
        "_running",
        "_send",
        "_taken",
        "_upgrade",
        "authorization",
        "caller",
        "sent",
        "unread",
    )

    def __init__(self, owner: SocketOwner, upgrade: Request, receive: Receive, send: Send) -> None:
        self.caller: Caller | None = None
        self.authorization = b""
        self.sent = 0
        self.unread = 0
        self._owner = owner
        self._receive = receive
        self._send = send
        self._upgrade = upgrade
        self._connection: SocketConnection | None = upgrade.scope.get("extensions", {}).get(CONNECTION)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._cancelled: set[asyncio.Task[None]] = set()  # which have not ended yet
        self._main: asyncio.Task[Any] | None = None
        self._ending: Closing | None = None
        self._taken = 0  # bytes that had left for the client at the last look
        self._progressed_at = asyncio.get_running_loop().time()  # when bytes last left, or none were waiting

    async def run(self) -> int:
        """Accepts the socket and serves it until it ends; returns the close code."""
        try:
            ending = await self._until_it_ends()
        finally:
            for task in self._running.values():
                task.cancel()
        await self._close(ending)
        await asyncio.gather(*self._running.values(), *self._cancelled, return_exceptions=True)
        return ending.code

    def end(self, ending: Closing) -> None:
        """Ends the socket from outside; only the first call counts."""
        if self._main is not None and self._ending is None:
            self._ending = ending
            self._main.cancel()

    def drop_if_stuck(self, now_seconds: float) -> None:
        """Drops the client if results wait for it and it has long read nothing; in the loop's time."""
        taken = self.sent
        if self._connection is not None:
            taken -= self._connection.transport.get_write_buffer_size()
        if not self.unread or taken > self._taken:
            self._progressed_at = now_seconds
        self._taken = taken
        if now_seconds - self._progressed_at > self._owner.stuck_seconds:
            self.end(DROPPED)

    async def _until_it_ends(self) -> Closing:
        self._main = asyncio.current_task()
        try:
            await self._accept()
            await self._acknowledge()
            while True:
                await self._handle(transport_ws.message_of(await self._receive()))
        except Closing as closing:
            return closing
        except asyncio.CancelledError:
            if self._ending is None or self._main is None:
                raise
            self._main.uncancel()
            return self._ending
        except Exception:  # noqa: BLE001 (the last one to catch it; logged whole)
            _log.exception("unexpected failure on a socket", extra={"request_id": self._upgrade.id})
            return Closing(transport_ws.INTERNAL_ERROR, "Internal server error")
        finally:
            self._main = None

    async def _accept(self) -> None:
        offered = self._upgrade.scope.get("subprotocols", ())
        chosen = SUBPROTOCOL if SUBPROTOCOL in offered else None
        headers = [(b"x-request-id", self._upgrade.id.encode())]
        await self._pass_on({"type": "websocket.accept", "subprotocol": chosen, "headers": headers})
        if chosen is None:
            raise Closing(transport_ws.SUBPROTOCOL_NOT_ACCEPTABLE, "Subprotocol not acceptable")

    async def _acknowledge(self) -> None:
        """Waits for `connection_init`, and for the key in it unless the upgrade carried one."""
        deadline = asyncio.get_running_loop().time() + self._owner.init_seconds
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    message = transport_ws.message_of(await self._receive())
            except TimeoutError:
                reason = "Connection initialisation timeout"
                raise Closing(transport_ws.INITIALISATION_TIMEOUT, reason) from None
            if isinstance(message, transport_ws.ConnectionInit):
                break
            if isinstance(message, transport_ws.Subscribe):
                raise Closing(transport_ws.UNAUTHORIZED, "Unauthorized")
            await self._handle(message)
        if self.caller is None:
            await self._authenticate(message.payload or {})
        await self._put(transport_ws.ACKNOWLEDGEMENT)

    async def _authenticate(self, payload: Mapping[str, Any]) -> None:
        key = next((value for name, value in payload.items() if name.lower() == "authorization"), None)
        try:
            await self._owner.admit(self, key.encode() if isinstance(key, str) else b"")
        except Unauthenticated:
            raise Closing(transport_ws.FORBIDDEN, "Forbidden") from None
        except Problem as problem:
            raise Closing(transport_ws.TRY_AGAIN_LATER, problem.detail) from None

    async def _handle(self, message: transport_ws.ClientMessage) -> None:
        match message:
            case transport_ws.Subscribe():
                await self._subscribe(message)
            case transport_ws.Complete():
                self._complete(message.id)
            case transport_ws.Ping(payload):
                await self._put(transport_ws.pong(payload))
            case transport_ws.ConnectionInit():
                reason = "Too many initialisation requests"
                raise Closing(transport_ws.TOO_MANY_INITIALISATIONS, reason)
            case transport_ws.Pong():
                pass

    async def _subscribe(self, message: transport_ws.Subscribe) -> None:
        if message.id in self._running:
            reason = f"Subscriber for {message.id} already exists"
            raise Closing(transport_ws.SUBSCRIBER_EXISTS, reason)
        try:
            if len(self._running) + len(self._cancelled) >= _MAX_OPERATIONS:
                raise refusal(RATE_LIMITED, f"A socket runs at most {_MAX_OPERATIONS} operations at a time")
            request = message.request()
        except Refused as refused:
            await self._put(transport_ws.errors(message.id, refused.errors))
        else:
            self._running[message.id] = asyncio.create_task(self._operate(message.id, request))

    def _complete(self, id_: str) -> None:
        """Stops an operation that the client has completed, unless it has ended."""
        task = self._running.pop(id_, None)
        if task is not None:
            task.cancel()
            self._cancelled.add(task)
            task.add_done_callback(self._cancelled.discard)

    async def _operate(self, id_: str, request: GraphQLRequest) -> None:
        # Raised, the cancellation would stay with the task, and with it all that the operation held.
        with suppress(asyncio.CancelledError):
            await self._run(id_, request)

    async def _run(self, id_: str, request: GraphQLRequest) -> None:
        this = asyncio.current_task()

        async def put(*parts: bytes) -> None:
            if self._running.get(id_) is this:  # else the client has completed it
                await self._put(*parts)

        async def push(payload: bytes) -> None:
            await put(*transport_ws.next_result(id_, payload))

        assert self.caller is not None  # or nothing was acknowledged
        try:
            await self._owner.runner.run(self.caller, request, self._upgrade, push)
            last = transport_ws.completion(id_)
        except Refused as refused:
            last = transport_ws.errors(id_, refused.errors)
        except Exception:  # noqa: BLE001 (the others go on; logged whole)
            _log.exception("unexpected failure of an operation", extra={"request_id": self._upgrade.id})
            last = transport_ws.errors(id_, [unexpected(self._upgrade.id)])
        await put(last)
        if self._running.get(id_) is this:
            del self._running[id_]

    async def _put(self, *parts: bytes) -> None:
        """Sends a message; waits, without copying it, while the client reads more slowly than we write."""
        size = sum(map(len, parts))
        self.unread += size
        self._owner.hold(size)
        if self.unread > max(size, _MAX_UNREAD):  # a single message may be larger
            self.end(DROPPED)
        try:
            while self._connection is not None and not self._connection.writable.is_set():
                await self._connection.writable.wait()
            await self._pass_on({"type": "websocket.send", "text": b"".join(parts).decode()})
        finally:
            self.unread -= size
            self._owner.release(size)
        self.sent += size

    async def _pass_on(self, event: dict[str, Any]) -> None:
        # Where the client has gone or the server has closed, the disconnect event is next to be received.
        with suppress(OSError, RuntimeError):
            await self._send(event)

    async def _close(self, ending: Closing) -> None:
        dropped = ending.dropped
        if ending.notify:
            try:
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await self._pass_on(
                        {"type": "websocket.close", "code": ending.code, "reason": ending.reason}
                    )
            except TimeoutError:
                dropped = True
        if dropped and self._connection is not None:
            self._connection.transport.abort()
