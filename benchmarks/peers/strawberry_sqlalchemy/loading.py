"""The rows of tradepost's export, ids and all, into the peer's tables: both can then be asked the same."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Index, insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from benchmarks.peers.fastapi_sqlalchemy.tables import LineItem, Order, Product, Row, User

Values = dict[str, Any]
_BATCH = 2_000

# What a page of someone's orders, and the lines of many, are read by.
_INDEXES = (
    Index("orders_by_user", Order.user_id, Order.id),
    Index("line_items_in_order", LineItem.order_id, LineItem.position),
)


class Exported(msgspec.Struct, rename="camel"):
    id: str
    created_at: datetime

    def values(self) -> Values:
        return {"id": self.id, "created_at": self.created_at, "updated_at": self.created_at}


class ExportedUser(Exported):
    name: str
    email: str
    status: str

    def values(self) -> Values:
        return {**super().values(), "name": self.name, "email": self.email, "status": self.status}


class ExportedProduct(Exported):
    sku: str
    name: str
    description: str | None
    price: float
    currency: str
    stock: int | None
    status: str

    def values(self) -> Values:
        own = {
            name: getattr(self, name)
            for name in ("sku", "name", "description", "currency", "stock", "status")
        }
        return {**super().values(), **own, "price_minor": _minor(self.price)}


class ExportedLine(msgspec.Struct, rename="camel"):
    id: str
    product_id: str
    sku: str
    name: str
    quantity: int
    unit_price: float


class ExportedOrder(Exported):
    user_id: str
    status: str
    currency: str
    line_items: list[ExportedLine]

    def values(self) -> Values:
        own = {"user_id": self.user_id, "status": self.status, "currency": self.currency}
        total = sum(_minor(line.unit_price) * line.quantity for line in self.line_items)
        return {**super().values(), **own, "total_minor": total}

    def lines(self) -> Iterator[Values]:
        for position, line in enumerate(self.line_items):
            kept = {name: getattr(line, name) for name in ("id", "product_id", "sku", "name", "quantity")}
            price = {"unit_price_minor": _minor(line.unit_price)}
            yield {**kept, **price, "order_id": self.id, "position": position}


Read = TypeVar("Read", bound=Exported)


async def load(engine: AsyncEngine, folder: Path) -> None:
    async with engine.begin() as connection:
        for users in _batches(folder / "users.jsonl", ExportedUser):
            await _insert(connection, User, [user.values() for user in users])
        for products in _batches(folder / "products.jsonl", ExportedProduct):
            await _insert(connection, Product, [product.values() for product in products])
        for orders in _batches(folder / "orders.jsonl", ExportedOrder):
            await _insert(connection, Order, [order.values() for order in orders])
            await _insert(connection, LineItem, [line for order in orders for line in order.lines()])
        for index in _INDEXES:
            await connection.run_sync(index.create)


async def _insert(connection: AsyncConnection, table: type[Row], rows: list[Values]) -> None:
    await connection.execute(insert(table), rows)


def _batches(file: Path, kind: type[Read]) -> Iterator[list[Read]]:
    with file.open("rb") as lines:
        read = msgspec.json.Decoder(kind).decode
        while batch := [read(line) for line in islice(lines, _BATCH)]:
            yield batch


def _minor(price: float) -> int:
    return round(price * 100)
