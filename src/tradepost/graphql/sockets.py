"""All WebSockets of this process: how many there may be, whose they are, and whether their keys are valid."""

import asyncio
import logging
from collections import Counter
from typing import NamedTuple

from tradepost.access.caller import Caller
from tradepost.graphql.socket import DROPPED, GraphQLSocket, OperationRunner
from tradepost.graphql.transport_ws import FORBIDDEN, Closing
from tradepost.http.request import Receive, Request, Send
from tradepost.metrics import Metrics
from tradepost.problems import Problem, RateLimited, Unauthenticated, Unavailable

_log = logging.getLogger("tradepost.graphql")

_MAX_UNREAD = 64 << 20  # bytes of results that wait in all sockets together


class Ended(NamedTuple):
    """How a socket ended: the close code, the bytes of the messages that were sent, and its caller."""

    code: int
    sent: int
    caller: Caller | None


class Sockets:
    """At most `maximum` sockets. One key has at most half of them, callers without a key a tenth."""

    def __init__(
        self,
        runner: OperationRunner,
        metrics: Metrics,
        maximum: int = 10_000,
        *,
        init_seconds: float = 3.0,
        check_seconds: float = 2.0,
        stuck_seconds: float = 10.0,
    ) -> None:
        self.runner = runner
        self.init_seconds = init_seconds
        self.stuck_seconds = stuck_seconds
        self._unread = 0  # bytes of results, of all sockets
        self._metrics = metrics
        self._maximum = maximum
        self._check_seconds = check_seconds
        self._open: set[GraphQLSocket] = set()
        self._by_key: Counter[str] = Counter()
        self._authenticated = 0
        self._watchers: list[asyncio.Task[None]] = []

    async def serve(self, request: Request, receive: Receive, send: Send) -> Ended:
        """Serves a socket from its upgrade to its end.

        Raises `Unavailable` if there are too many sockets, `Unauthenticated` for an invalid key in the
        `Authorization` header, and `RateLimited` for a key with too many sockets. Without the header,
        `connection_init` must carry the key.
        """
        if len(self._open) >= self._maximum:
            message = f"{self._maximum} sockets are open here; try again later"
            raise Unavailable(message)
        socket = GraphQLSocket(self, request, receive, send)
        self._enter(socket)
        try:
            await self._check_upgrade(socket, request.headers.get(b"authorization"))
            return Ended(await socket.run(), socket.sent, socket.caller)
        finally:
            self._leave(socket)

    async def admit(self, socket: GraphQLSocket, authorization: bytes) -> None:
        """Notes whose the socket is; raises `Unauthenticated`, or `RateLimited` if the key has its share."""
        caller = await self.runner.caller(authorization)
        share = max(1, self._maximum // 2)
        if self._by_key[caller.key_id] >= share:
            message = f"This API key has {share} sockets open, which is as many as one may have"
            raise RateLimited(message, retry_after=1)
        socket.caller, socket.authorization = caller, authorization
        self._by_key[caller.key_id] += 1
        self._authenticated += 1

    def hold(self, size: int) -> None:
        """Adds bytes that wait to be read; drops the client that leaves most unread if they are too many."""
        self._unread += size
        if self._unread > _MAX_UNREAD and self._open:
            max(self._open, key=lambda socket: socket.unread).end(DROPPED)

    def release(self, size: int) -> None:
        """Subtracts bytes that no longer wait."""
        self._unread -= size

    async def _check_upgrade(self, socket: GraphQLSocket, authorization: bytes | None) -> None:
        if authorization is not None:
            await self.admit(socket, authorization)
        elif len(self._open) - self._authenticated > max(1, self._maximum // 10):
            message = "Too many sockets are waiting for connection_init; try again later"
            raise Unavailable(message)

    def _enter(self, socket: GraphQLSocket) -> None:
        self._open.add(socket)
        self._metrics.sockets += 1
        if not self._watchers:
            watches = (self._check_keys(), self._drop_stuck())
            self._watchers = [asyncio.create_task(each) for each in watches]

    def _leave(self, socket: GraphQLSocket) -> None:
        self._open.discard(socket)
        self._metrics.sockets -= 1
        if socket.caller is not None:
            self._authenticated -= 1
            self._by_key[socket.caller.key_id] -= 1
            if not self._by_key[socket.caller.key_id]:
                del self._by_key[socket.caller.key_id]
        if not self._open:
            for watcher in self._watchers:
                watcher.cancel()
            self._watchers = []

    async def _drop_stuck(self) -> None:
        while True:
            await asyncio.sleep(self.stuck_seconds / 10)
            now_seconds = asyncio.get_running_loop().time()
            for socket in list(self._open):
                socket.drop_if_stuck(now_seconds)

    async def _check_keys(self) -> None:
        """Ends the sockets of keys that were revoked or have expired. Takes a tenth of the time at most."""
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            by_key: dict[bytes, list[GraphQLSocket]] = {}
            for socket in self._open:
                if socket.caller is not None:
                    by_key.setdefault(socket.authorization, []).append(socket)
            for authorization, sockets in by_key.items():
                if not await self._is_valid(authorization):
                    for socket in sockets:
                        socket.end(Closing(FORBIDDEN, "Forbidden"))
            await asyncio.sleep(max(self._check_seconds, 9 * (clock() - began)))

    async def _is_valid(self, authorization: bytes) -> bool:
        try:
            await self.runner.caller(authorization)
        except Unauthenticated:
            return False
        except Problem:
            pass  # the database cannot say at the moment
        except Exception:  # noqa: BLE001 (the watch goes on; logged whole)
            _log.exception("could not check a key")
        return True
