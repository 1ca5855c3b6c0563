"""What sockets run: operations of every kind, each drawing from its key's rate when it begins."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing

from tradepost.access.caller import Caller
from tradepost.graphql.asked import Asked
from tradepost.graphql.errors import refused
from tradepost.graphql.surface import GraphQL, Prepared, Session
from tradepost.http.door import Door
from tradepost.http.request import Request
from tradepost.problems import RateLimited

Push = Callable[[bytes], Awaitable[None]]


class Operations:
    """Knows callers and runs their operations."""

    def __init__(self, graphql: GraphQL, door: Door, base_url: str | None) -> None:
        self._graphql = graphql
        self._door = door
        self._base_url = base_url

    async def caller(self, authorization: bytes | None) -> Caller:
        """Who shows this; raises `Unauthenticated`."""
        return await self._door.caller(authorization)

    async def run(self, caller: Caller, asked: Asked, request: Request, push: Push) -> None:
        """Runs an operation to its end and pushes each answer; raises `Refused` before the first."""
        prepared = await self._prepared(caller, asked)
        source = self._base_url or request.base_url
        session = Session(caller, request.id, source, request.traceparent)
        try:
            if prepared.operation.kind != "subscription":
                body, _ = await self._graphql.run(prepared, session)
                await push(body)
                return
            async with aclosing(self._graphql.pushes(prepared, session)) as pushes:
                async for body in pushes:
                    await push(body)
        finally:
            request.spent(session.statements, session.nanoseconds)

    async def _prepared(self, caller: Caller, asked: Asked) -> Prepared:
        try:
            await self._door.draw_for(caller.key_id, 1)
            prepared = await self._graphql.prepare(asked, caller)
            await self._door.draw_for(caller.key_id, prepared.cost - 1)
        except RateLimited as limited:
            raise refused(limited) from None
        return prepared
