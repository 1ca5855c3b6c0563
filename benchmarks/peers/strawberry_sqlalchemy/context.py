"""What the resolvers of one request share: its session, what its key may do, and its loaders."""

import asyncio
from collections import defaultdict
from typing import TypeVar

from sqlalchemy import Select, select
from strawberry.dataloader import DataLoader

from benchmarks.peers.fastapi_sqlalchemy.database import Sessions
from benchmarks.peers.fastapi_sqlalchemy.tables import LineItem, Product, Row

Found = TypeVar("Found", bound=Row)


class Context:
    def __init__(self, sessions: Sessions, scopes: frozenset[str]) -> None:
        self.sessions = sessions
        self.session = sessions.reading()
        self._scopes = scopes
        # A session serves one statement at a time, and resolvers side by side would use it at once.
        self._turn = asyncio.Lock()
        self.products = DataLoader(load_fn=self._products_by_id)
        self.line_items = DataLoader(load_fn=self._line_items_by_order)

    def require(self, scope: str) -> None:
        if not {scope, "admin"} & self._scopes:
            raise PermissionError(f"The key lacks the scope {scope}")

    async def get(self, table: type[Found], row_id: str) -> Found | None:
        async with self._turn:
            return await self.session.get(table, row_id)

    async def all(self, query: Select[Found]) -> list[Found]:
        async with self._turn:
            return list(await self.session.scalars(query))

    async def _products_by_id(self, ids: list[str]) -> list[Product | None]:
        found = {
            product.id: product for product in await self.all(select(Product).where(Product.id.in_(ids)))
        }
        return [found.get(each) for each in ids]

    async def _line_items_by_order(self, ids: list[str]) -> list[list[LineItem]]:
        query = (
            select(LineItem).where(LineItem.order_id.in_(ids)).order_by(LineItem.order_id, LineItem.position)
        )
        found = defaultdict[str, list[LineItem]](list)
        for line in await self.all(query):
            found[line.order_id].append(line)
        return [found[each] for each in ids]
