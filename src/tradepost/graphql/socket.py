"""GraphQL over WebSocket: `graphql-transport-ws`, and all its sockets in this process.

https://github.com/enisdenj/graphql-ws/blob/master/PROTOCOL.md says what is sent; where it leaves a close code
open, it is that of its reference server. Each operation is a task of its own. Nothing is queued: a result
that cannot be sent yet waits in the operation that has it, so what a client leaves unread is bounded by the
number of its operations and in bytes, and whoever reads nothing at all is let go.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any, NamedTuple, Protocol

import msgspec
from msgspec import Meta, Struct

from tradepost.access.caller import Caller
from tradepost.graphql.asked import Asked
from tradepost.graphql.errors import RATE_LIMITED, Error, Refused, refusal, refused, unexpected
from tradepost.http.request import Receive, Request, Send
from tradepost.metrics import Metrics
from tradepost.problems import Malformed, Problem, RateLimited, Unauthenticated, Unavailable

_log = logging.getLogger("tradepost.graphql")

SUBPROTOCOL = "graphql-transport-ws"
CONNECTION = "tradepost.connection"  # the extension in which a server hands over a `Connection`

_MAX_OPERATIONS = 100  # of a socket at a time
_MAX_WAITING = 8 << 20  # bytes of results that wait for one client to read
_MAX_WAITING_OF_ALL = 64 << 20
_GOODBYE_SECONDS = 5.0
_REASON_BYTES = 123  # what a close frame has room for (RFC 6455, 5.5)

_GONE = 1005
_TRY_AGAIN_LATER = 1013
_BAD_REQUEST = 4400
_UNAUTHORIZED = 4401
_FORBIDDEN = 4403
_SUBPROTOCOL_NOT_ACCEPTABLE = 4406
_INITIALISATION_TIMEOUT = 4408
_SUBSCRIBER_EXISTS = 4409
_TOO_MANY_INITIALISATIONS = 4429
_INTERNAL_ERROR = 4500

_encode = msgspec.json.Encoder().encode


class Operations(Protocol):
    """What a socket is for: somebody who knows callers and runs operations."""

    async def caller(self, authorization: bytes | None) -> Caller:
        """Who shows this; raises `Unauthenticated`."""

    async def run(
        self, caller: Caller, asked: Asked, request: Request, push: Callable[[bytes], Awaitable[None]]
    ) -> None:
        """Runs an operation to its end, and pushes each result as JSON; `request` is the upgrade's.

        Raises `Refused` for a request error, before anything was pushed. Is cancelled when the client
        completes the operation or the socket ends.
        """


class Connection(Protocol):
    """What is below a socket: whether more can be written, what is unsent, and a way to let go."""

    writable: asyncio.Event
    transport: asyncio.Transport


class Ended(NamedTuple):
    """How a socket ended: the close code, and the bytes of the messages that were sent."""

    code: int
    sent: int


class Sockets:
    """The sockets of this process: how many there may be, whose they are, and whether they still may."""

    def __init__(
        self,
        operations: Operations,
        metrics: Metrics,
        most: int = 10_000,
        *,
        init_seconds: float = 3.0,
        check_seconds: float = 2.0,
        stuck_seconds: float = 10.0,
    ) -> None:
        self.operations = operations
        self.init_seconds = init_seconds
        self.stuck_seconds = stuck_seconds
        self._waiting = 0  # bytes of results, of all sockets
        self._metrics = metrics
        self._most = most
        self._check_seconds = check_seconds
        self._open: set[_Socket] = set()
        self._of_key: Counter[str] = Counter()
        self._known = 0
        self._watchers: list[asyncio.Task[None]] = []

    async def serve(self, request: Request, receive: Receive, send: Send) -> Ended:
        """Serves a socket from its upgrade to its end; a `Problem` refuses the upgrade.

        A key in the `Authorization` header has to be valid; without one `connection_init` has to carry it.
        Whose it was is noted in the request.
        """
        if len(self._open) >= self._most:
            message = f"{self._most} sockets are open here; try again later"
            raise Unavailable(message)
        socket = _Socket(self, request, receive, send)
        self._enter(socket)
        try:
            await self._check_upgrade(socket, request.headers.get(b"authorization"))
            return Ended(await socket.run(), socket.sent)
        finally:
            request.caller = socket.caller
            self._leave(socket)

    async def let_in(self, socket: "_Socket", authorization: bytes) -> None:
        """Notes whose the socket is; `Unauthenticated`, or `RateLimited` if the key has its share.

        One key has at most half of all sockets, so that it cannot lock out the others.
        """
        caller = await self.operations.caller(authorization)
        share = max(1, self._most // 2)
        if self._of_key[caller.key_id] >= share:
            message = f"This API key has {share} sockets open, which is as many as one may have"
            raise RateLimited(message, retry_after=1)
        socket.caller, socket.authorization = caller, authorization
        self._of_key[caller.key_id] += 1
        self._known += 1

    def hold(self, size: int) -> None:
        """Notes that so many bytes more wait. If too many do, whoever leaves most unread is let go."""
        self._waiting += size
        if self._waiting > _MAX_WAITING_OF_ALL and self._open:
            max(self._open, key=lambda socket: socket.waiting).end(_dropped())

    def release(self, size: int) -> None:
        """Notes that they wait no more."""
        self._waiting -= size

    async def _check_upgrade(self, socket: "_Socket", authorization: bytes | None) -> None:
        """Those who have shown no key yet have a tenth, so that they cannot lock out those who have."""
        if authorization is not None:
            await self.let_in(socket, authorization)
        elif len(self._open) - self._known > max(1, self._most // 10):
            message = "Too many sockets are waiting for connection_init; try again later"
            raise Unavailable(message)

    def _enter(self, socket: "_Socket") -> None:
        self._open.add(socket)
        self._metrics.sockets += 1
        if not self._watchers:
            watches = (self._check_keys(), self._drop_stuck())
            self._watchers = [asyncio.create_task(each) for each in watches]

    def _leave(self, socket: "_Socket") -> None:
        self._open.discard(socket)
        self._metrics.sockets -= 1
        if socket.caller is not None:
            self._known -= 1
            self._of_key[socket.caller.key_id] -= 1
            if not self._of_key[socket.caller.key_id]:
                del self._of_key[socket.caller.key_id]
        if not self._open:
            for watcher in self._watchers:
                watcher.cancel()
            self._watchers = []

    async def _drop_stuck(self) -> None:
        while True:
            await asyncio.sleep(self.stuck_seconds / 10)
            now = asyncio.get_running_loop().time()
            for socket in list(self._open):
                socket.look(now)

    async def _check_keys(self) -> None:
        """A key that was revoked or has expired ends its sockets. Takes a tenth of the time at most."""
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            by_key: dict[bytes, list[_Socket]] = {}
            for socket in self._open:
                if socket.caller is not None:
                    by_key.setdefault(socket.authorization, []).append(socket)
            for authorization, sockets in by_key.items():
                if not await self._is_valid(authorization):
                    for socket in sockets:
                        socket.end(Closing(_FORBIDDEN, "Forbidden"))
            await asyncio.sleep(max(self._check_seconds, 9 * (clock() - began)))

    async def _is_valid(self, authorization: bytes) -> bool:
        try:
            await self.operations.caller(authorization)
        except Unauthenticated:
            return False
        except Problem:
            pass  # nobody can say at the moment
        except Exception:  # noqa: BLE001 (the watch goes on; logged whole)
            _log.exception("could not check a key")
        return True


class Closing(Exception):
    """A socket is to end. The client is told why, unless it has gone or, as it does not read, is dropped."""

    def __init__(self, code: int, reason: str = "", *, told: bool = True, dropped: bool = False) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason.encode()[:_REASON_BYTES].decode(errors="ignore")
        self.told = told and not dropped
        self.dropped = dropped


def _dropped() -> Closing:
    return Closing(_TRY_AGAIN_LATER, dropped=True)


_Id = Annotated[str, Meta(min_length=1, max_length=128)]
_Payload = dict[str, Any] | None


class _ConnectionInit(Struct, tag_field="type", tag="connection_init"):
    payload: _Payload = None


class _Ping(Struct, tag_field="type", tag="ping"):
    payload: _Payload = None


class _Pong(Struct, tag_field="type", tag="pong"):
    payload: _Payload = None


class _Subscribe(Struct, tag_field="type", tag="subscribe"):
    id: _Id
    payload: dict[str, Any]


class _Complete(Struct, tag_field="type", tag="complete"):
    id: _Id


_Message = _ConnectionInit | _Ping | _Pong | _Subscribe | _Complete
_decode = msgspec.json.Decoder(_Message).decode


class _Socket:
    """One socket, and the operations on it."""

    __slots__ = (
        "_cancelled",
        "_connection",
        "_ending",
        "_main",
        "_moved_at",
        "_receive",
        "_request",
        "_running",
        "_send",
        "_sockets",
        "_taken",
        "authorization",
        "caller",
        "sent",
        "waiting",
    )

    def __init__(self, sockets: Sockets, request: Request, receive: Receive, send: Send) -> None:
        self.caller: Caller | None = None
        self.authorization = b""
        self.sent = 0  # bytes of messages
        self.waiting = 0  # bytes that wait to be sent
        self._sockets = sockets
        self._receive = receive
        self._send = send
        self._request = request
        self._connection: Connection | None = request.scope.get("extensions", {}).get(CONNECTION)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._cancelled: set[asyncio.Task[None]] = set()  # which have not ended yet
        self._main: asyncio.Task[Any] | None = None
        self._ending: Closing | None = None
        self._taken = 0  # bytes that had left for the client when it was looked at last
        self._moved_at = asyncio.get_running_loop().time()  # when it last took something, or had nothing to

    async def run(self) -> int:
        """Accepts the socket, and serves it until it ends; the close code."""
        try:
            ending = await self._until_it_ends()
        finally:
            for task in self._running.values():
                task.cancel()
        await self._close(ending)
        await asyncio.gather(*self._running.values(), *self._cancelled, return_exceptions=True)
        return ending.code

    def end(self, ending: Closing) -> None:
        """Ends the socket from outside; the first to say so has the last word."""
        if self._main is not None and self._ending is None:
            self._ending = ending
            self._main.cancel()

    def look(self, now: float) -> None:
        """Drops the client if something waits for it and it has long taken nothing."""
        taken = self.sent
        if self._connection is not None:
            taken -= self._connection.transport.get_write_buffer_size()
        if not self.waiting or taken > self._taken:
            self._moved_at = now
        self._taken = taken
        if now - self._moved_at > self._sockets.stuck_seconds:
            self.end(_dropped())

    async def _until_it_ends(self) -> Closing:
        self._main = asyncio.current_task()
        try:
            await self._accept()
            await self._acknowledge()
            while True:
                await self._heed(await self._message())
        except Closing as closing:
            return closing
        except asyncio.CancelledError:
            if self._ending is None or self._main is None:
                raise
            self._main.uncancel()
            return self._ending
        except Exception:  # noqa: BLE001 (the last one to catch it; logged whole)
            _log.exception("unexpected failure on a socket", extra={"request_id": self._request.id})
            return Closing(_INTERNAL_ERROR, "Internal server error")
        finally:
            self._main = None

    async def _accept(self) -> None:
        known = SUBPROTOCOL if SUBPROTOCOL in self._request.scope.get("subprotocols", ()) else None
        headers = [(b"x-request-id", self._request.id.encode())]
        await self._hand_over({"type": "websocket.accept", "subprotocol": known, "headers": headers})
        if known is None:
            raise Closing(_SUBPROTOCOL_NOT_ACCEPTABLE, "Subprotocol not acceptable")

    async def _acknowledge(self) -> None:
        """Waits for `connection_init`, and for the key in it unless the upgrade carried one."""
        deadline = asyncio.get_running_loop().time() + self._sockets.init_seconds
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    message = await self._message()
            except TimeoutError:
                raise Closing(_INITIALISATION_TIMEOUT, "Connection initialisation timeout") from None
            if isinstance(message, _ConnectionInit):
                break
            if isinstance(message, _Subscribe):
                raise Closing(_UNAUTHORIZED, "Unauthorized")
            await self._heed(message)
        if self.caller is None:
            await self._introduce(message.payload or {})
        await self._put(b'{"type":"connection_ack"}')

    async def _introduce(self, payload: Mapping[str, Any]) -> None:
        given = next((value for name, value in payload.items() if name.lower() == "authorization"), None)
        try:
            await self._sockets.let_in(self, given.encode() if isinstance(given, str) else b"")
        except Unauthenticated:
            raise Closing(_FORBIDDEN, "Forbidden") from None
        except Problem as problem:
            raise Closing(_TRY_AGAIN_LATER, problem.detail) from None

    async def _message(self) -> _Message:
        event = await self._receive()
        if event["type"] == "websocket.disconnect":
            raise Closing(event.get("code") or _GONE, told=False)
        text = event.get("text")
        if text is None:
            raise Closing(_BAD_REQUEST, "Messages are text, not binary")
        try:
            message: _Message = _decode(text)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise Closing(_BAD_REQUEST, f"Invalid message: {error}") from None
        return message

    async def _heed(self, message: _Message) -> None:
        match message:
            case _Subscribe():
                await self._subscribe(message)
            case _Complete():
                self._complete(message.id)
            case _Ping(None):
                await self._put(b'{"type":"pong"}')
            case _Ping(payload):
                await self._put(b'{"type":"pong","payload":%b}' % _encode(payload))
            case _ConnectionInit():
                raise Closing(_TOO_MANY_INITIALISATIONS, "Too many initialisation requests")
            case _Pong():
                pass

    async def _subscribe(self, message: _Subscribe) -> None:
        if message.id in self._running:
            raise Closing(_SUBSCRIBER_EXISTS, f"Subscriber for {message.id} already exists")
        try:
            if len(self._running) + len(self._cancelled) >= _MAX_OPERATIONS:
                raise refusal(RATE_LIMITED, f"A socket runs at most {_MAX_OPERATIONS} operations at a time")
            asked = _asked(message.payload)
        except Refused as refusal_:
            await self._put(_error(message.id, refusal_.errors))
        else:
            self._running[message.id] = asyncio.create_task(self._operate(message.id, asked))

    def _complete(self, id_: str) -> None:
        """The client wants no more of an operation; it may have ended meanwhile."""
        task = self._running.pop(id_, None)
        if task is not None:
            task.cancel()
            self._cancelled.add(task)
            task.add_done_callback(self._cancelled.discard)

    async def _operate(self, id_: str, asked: Asked) -> None:
        # Raised, it would stay with the task, and with it all that the operation held.
        with suppress(asyncio.CancelledError):
            await self._run(id_, asked)

    async def _run(self, id_: str, asked: Asked) -> None:
        this = asyncio.current_task()

        async def tell(*parts: bytes) -> None:
            if self._running.get(id_) is this:  # else the client has completed it
                await self._put(*parts)

        async def push(payload: bytes) -> None:
            await tell(b'{"id":%b,"type":"next","payload":' % _encode(id_), payload, b"}")

        assert self.caller is not None  # or nothing was acknowledged
        try:
            await self._sockets.operations.run(self.caller, asked, self._request, push)
            last = b'{"id":%b,"type":"complete"}' % _encode(id_)
        except Refused as refusal_:
            last = _error(id_, refusal_.errors)
        except Exception:  # noqa: BLE001 (the others go on; logged whole)
            _log.exception("unexpected failure of an operation", extra={"request_id": self._request.id})
            last = _error(id_, [unexpected(self._request.id)])
        await tell(last)
        if self._running.get(id_) is this:
            del self._running[id_]

    async def _put(self, *parts: bytes) -> None:
        """Sends a message; waits, with no copy of it, while the client reads more slowly than is written."""
        size = sum(map(len, parts))
        self.waiting += size
        self._sockets.hold(size)
        if self.waiting > max(size, _MAX_WAITING):  # a single one may be larger
            self.end(_dropped())
        try:
            while self._connection is not None and not self._connection.writable.is_set():
                await self._connection.writable.wait()
            await self._hand_over({"type": "websocket.send", "text": b"".join(parts).decode()})
        finally:
            self.waiting -= size
            self._sockets.release(size)
        self.sent += size

    async def _hand_over(self, event: dict[str, Any]) -> None:
        # The client has gone, or the server closed by itself: the disconnect is on its way to `_message`.
        with suppress(OSError, RuntimeError):
            await self._send(event)

    async def _close(self, ending: Closing) -> None:
        dropped = ending.dropped
        if ending.told:
            try:
                async with asyncio.timeout(_GOODBYE_SECONDS):
                    await self._hand_over(
                        {"type": "websocket.close", "code": ending.code, "reason": ending.reason}
                    )
            except TimeoutError:
                dropped = True
        if dropped and self._connection is not None:
            self._connection.transport.abort()


def _error(id_: str, errors: list[Error]) -> bytes:
    return b'{"id":%b,"type":"error","payload":%b}' % (_encode(id_), _encode(errors))


def _asked(payload: Mapping[str, Any]) -> Asked:
    """A payload of another form breaks the protocol; of what is merely wrong in it the client is told."""
    try:
        return Asked.of(payload)
    except Malformed as problem:
        if any(each.code == "type" for each in problem.errors):
            raise Closing(_BAD_REQUEST, f"Invalid payload: {problem.detail}") from None
        raise refused(problem) from None
