"""The operations of sockets, of every kind; each draws from the rate limit of its key when it begins."""

from contextlib import aclosing

from tradepost.access.caller import Caller
from tradepost.graphql.errors import refused
from tradepost.graphql.request import GraphQLRequest
from tradepost.graphql.socket import Push
from tradepost.graphql.surface import GraphQL, Prepared, Session
from tradepost.http.access_control import AccessControl, Admission
from tradepost.http.request import Request


class SocketOperations:
    """Identifies callers and runs their operations (`OperationRunner`)."""

    def __init__(self, graphql: GraphQL, access_control: AccessControl) -> None:
        self._graphql = graphql
        self._access_control = access_control

    async def caller(self, authorization: bytes | None) -> Caller:
        """The caller with these credentials; raises `Unauthenticated`."""
        return await self._access_control.caller(authorization)

    async def run(self, caller: Caller, request: GraphQLRequest, upgrade: Request, push: Push) -> None:
        """Runs an operation to its end and pushes each answer as JSON.

        Raises `Refused` before the first for a request error, and for a key that has exceeded its rate.
        """
        prepared = await self._prepared(caller, request)
        session = Session(caller, upgrade.id, upgrade.base_url, upgrade.traceparent)
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
        await self._draw(caller, 1)
        prepared = await self._graphql.prepare(request, caller)
        await self._draw(caller, prepared.cost - 1)
        return prepared

    async def _draw(self, caller: Caller, cost: float) -> None:
        drawn = await self._access_control.draw(Admission(caller, caller.key_id), cost)
        if drawn.refusal is not None:
            raise refused(drawn.refusal)
