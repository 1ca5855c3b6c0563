"""Rows to measure on: the counts asked for, with values of everyday sizes. Orders have one to five lines."""

import random
from typing import Any

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from benchmarks.peers.fastapi_sqlalchemy.tables import LineItem, Order, Product, User, new_id

Values = dict[str, Any]
_BATCH = 2_000
_chance = random.Random(1)


async def fill(engine: AsyncEngine, users: int, products: int, orders: int) -> None:
    async with engine.begin() as connection:
        buyers = [_user(number) for number in range(users)]
        goods = [_product(number) for number in range(products)]
        await connection.execute(insert(User), buyers)
        await connection.execute(insert(Product), goods)
        for start in range(0, orders, _BATCH):
            await _insert_orders(connection, buyers, goods, min(_BATCH, orders - start))


async def _insert_orders(
    connection: AsyncConnection, buyers: list[Values], goods: list[Values], count: int
) -> None:
    orders, lines = [], []
    for _ in range(count):
        order = {"id": new_id(), "user_id": _chance.choice(buyers)["id"], "currency": "EUR"}
        own = [_line(order["id"], position, product) for position, product in enumerate(_basket(goods))]
        total = sum(line["unit_price_minor"] * line["quantity"] for line in own)
        orders.append({**order, "total_minor": total})
        lines += own
    await connection.execute(insert(Order), orders)
    await connection.execute(insert(LineItem), lines)


def _user(number: int) -> Values:
    return {"id": new_id(), "name": f"Maria Example {number}", "email": f"maria.example.{number}@example.com"}


def _product(number: int) -> Values:
    return {
        "id": new_id(),
        "sku": f"SKU-{number:06}",
        "name": f"Ceramic coffee mug, number {number}",
        "description": "Fired twice, safe in the dishwasher, holds a third of a litre.",
        "price_minor": _chance.randint(199, 19_999),
        "currency": "EUR",
        "stock": _chance.randint(100, 1_000),
    }


def _basket(goods: list[Values]) -> list[Values]:
    return _chance.sample(goods, _chance.randint(1, 5))


def _line(order_id: str, position: int, product: Values) -> Values:
    return {
        "id": new_id(),
        "order_id": order_id,
        "product_id": product["id"],
        "position": position,
        "quantity": _chance.randint(1, 4),
        "sku": product["sku"],
        "name": product["name"],
        "unit_price_minor": product["price_minor"],
    }
