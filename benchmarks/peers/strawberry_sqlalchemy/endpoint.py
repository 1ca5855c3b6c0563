"""The ASGI application: every request with its key and its context."""

import msgspec
from cross_web import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket
from strawberry.asgi import GraphQL

from benchmarks.peers.fastapi_sqlalchemy.database import Sessions
from benchmarks.peers.strawberry_sqlalchemy.access import Keys
from benchmarks.peers.strawberry_sqlalchemy.context import Context
from benchmarks.peers.strawberry_sqlalchemy.schema import schema


class Endpoint(GraphQL[Context, None]):
    def __init__(self, sessions: Sessions, keys: Keys) -> None:
        super().__init__(schema, graphql_ide=None)
        self._sessions = sessions
        self._keys = keys

    async def get_context(
        self,
        request: Request | WebSocket,
        response: Response | WebSocket,  # noqa: ARG002 (given by its name)
    ) -> Context:
        scopes = await self._keys.scopes_of(request.headers.get("authorization", ""))
        if scopes is None:
            raise HTTPException(401, "Unknown API key")
        return Context(self._sessions, scopes)

    def encode_json(self, data: object) -> bytes:
        return msgspec.json.encode(data)
