"""The operations of sockets, of every kind; each draws from the rate limit of its key when it begins."""

from contextlib import aclosing

from tradepost.access.caller import Caller
from tradepost.graphql.errors import refused
from tradepost.graphql.request import GraphQLRequest
from tradepost.graphql.socket import Push
from tradepost.graphql.surface import GraphQL, Prepared, Session
from tradepost.http.door import Door
from tradepost.http.request import Request
from tradepost.problems import RateLimited
from tradepost.storage.database import DatabaseUse


class SocketOperations:
    """Identifies callers and runs their operations (`OperationRunner`)."""

    def __init__(self, graphql: GraphQL, door: Door, base_url: str | None) -> None:
        self._graphql = graphql
        self._door = door
        self._base_url = base_url

    async def caller(self, authorization: bytes | None) -> Caller:
        """The caller with these credentials; raises `Unauthenticated`."""
        return await self._door.caller(authorization)

    async def run(self, caller: Caller, request: GraphQLRequest, upgrade: Request, push: Push) -> None:
        """Runs an operation to its end and pushes each answer as JSON.

        Raises `Refused` before the first for a request error, and for a key that has exceeded its rate.
        """
        prepared = await self._prepared(caller, request)
        source = self._base_url or upgrade.base_url
        session = Session(caller, upgrade.id, source, upgrade.traceparent, use=DatabaseUse())
        try:
            if prepared.operation.kind != "subscription":
                body, _ = await self._graphql.run(prepared, session)
                await push(body)
                return
            async with aclosing(self._graphql.pushes(prepared, session)) as pushes:
                async for body in pushes:
                    await push(body)
        finally:
            upgrade.use.add(session.use)

    async def _prepared(self, caller: Caller, request: GraphQLRequest) -> Prepared:
        try:
            await self._door.draw_for(caller.key_id, 1)
            prepared = await self._graphql.prepare(request, caller)
            await self._door.draw_for(caller.key_id, prepared.cost - 1)
        except RateLimited as limited:
            raise refused(limited) from None
        return prepared
