"""Bearer API keys: looked up by their hash, with an expiry, a revocation and scopes."""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, HTTPException
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import select

from benchmarks.peers.fastapi_sqlalchemy.database import SessionDependency
from benchmarks.peers.fastapi_sqlalchemy.tables import ApiKey, now

_bearer = HTTPBearer()


def hash_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


async def get_api_key(
    session: SessionDependency, credentials: Annotated[HTTPAuthorizationCredentials, Depends(_bearer)]
) -> ApiKey:
    key = await session.scalar(select(ApiKey).where(ApiKey.hash == hash_of(credentials.credentials)))
    if key is None or key.revoked_at or (key.expires_at and key.expires_at <= now()):
        raise HTTPException(401, "Unknown API key", {"WWW-Authenticate": "Bearer"})
    return key


def require(scope: str) -> Callable[[ApiKey], Awaitable[None]]:
    async def check(key: Annotated[ApiKey, Depends(get_api_key)]) -> None:
        if not {scope, "admin"} & set(key.scopes):
            raise HTTPException(403, f"The key lacks the scope {scope}")

    return check
