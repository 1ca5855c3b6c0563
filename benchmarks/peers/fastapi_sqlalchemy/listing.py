"""Pages of a table by an opaque cursor."""

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, HTTPException, Query
from sqlalchemy import Select
from sqlalchemy.ext.asyncio import AsyncSession

from benchmarks.peers.fastapi_sqlalchemy.database import SessionDependency
from benchmarks.peers.fastapi_sqlalchemy.tables import Row

Listed = TypeVar("Listed", bound=Row)
Listing = dict[str, Any]


@dataclass(frozen=True)
class Pager:
    session: AsyncSession
    limit: int
    after: str | None

    async def page(self, query: Select[Listed], table: type[Listed]) -> Listing:
        query = query.order_by(table.id).limit(self.limit + 1)
        if self.after is not None:
            query = query.where(table.id > self.after)
        found = list(await self.session.scalars(query))
        items = found[: self.limit]
        return {"items": items, "next": _cursor(items[-1].id) if len(found) > self.limit else None}


# Async, although it awaits nothing: FastAPI would call it in a thread otherwise.
async def get_pager(
    session: SessionDependency, limit: Annotated[int, Query(ge=1, le=200)] = 50, cursor: str | None = None
) -> Pager:
    return Pager(session, limit, _position(cursor))


PagerDependency = Annotated[Pager, Depends(get_pager)]


def _cursor(position: str) -> str:
    return base64.urlsafe_b64encode(position.encode()).decode()


def _position(cursor: str | None) -> str | None:
    try:
        return cursor and base64.urlsafe_b64decode(cursor).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise HTTPException(400, "Not a cursor") from error
