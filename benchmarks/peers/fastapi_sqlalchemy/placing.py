"""Placing an order: its rules, its lines, the stock it takes and its event, in the session's transaction."""

from fastapi import HTTPException
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from benchmarks.peers.fastapi_sqlalchemy.schemas import OrderIn
from benchmarks.peers.fastapi_sqlalchemy.tables import Event, LineItem, Order, Product, User, new_id, now


async def place(session: AsyncSession, body: OrderIn) -> Order:
    user = await session.get(User, body.user_id)
    if user is None or user.status != "ACTIVE":
        raise HTTPException(422, "userId names no active user")
    products = await _locked_products(session, body)
    order = _order(body, products)
    for line in body.line_items:
        _take(products[line.product_id], line.quantity)
    session.add_all([order, _event("dev.tradepost.order.placed", order)])
    return order


async def _locked_products(session: AsyncSession, body: OrderIn) -> dict[str, Product]:
    """Locked in the order of their ids, so that two orders never wait for each other."""
    wanted = {line.product_id for line in body.line_items}
    query = select(Product).where(Product.id.in_(wanted), Product.status == "ACTIVE")
    found = await session.scalars(query.order_by(Product.id).with_for_update())
    products = {product.id: product for product in found}
    if products.keys() != wanted:
        raise HTTPException(422, "productId names no active product")
    if len({product.currency for product in products.values()}) > 1:
        raise HTTPException(422, "the products have different currencies")
    return products


def _order(body: OrderIn, products: dict[str, Product]) -> Order:
    order_id = new_id()
    lines = [
        LineItem(
            id=new_id(),
            order_id=order_id,
            position=position,
            product_id=line.product_id,
            quantity=line.quantity,
            sku=products[line.product_id].sku,
            name=products[line.product_id].name,
            unit_price_minor=products[line.product_id].price_minor,
        )
        for position, line in enumerate(body.line_items)
    ]
    return Order(
        id=order_id,
        user_id=body.user_id,
        currency=products[lines[0].product_id].currency,
        total_minor=sum(line.unit_price_minor * line.quantity for line in lines),
        line_items=lines,
    )


def _take(product: Product, quantity: int) -> None:
    if product.stock is None:
        return
    if product.stock < quantity:
        raise HTTPException(422, f"too little stock of {product.sku}")
    product.stock -= quantity


def _event(event_type: str, order: Order) -> Event:
    data = {
        "entityType": "order",
        "entityId": order.id,
        "eventType": event_type,
        "timestamp": now().isoformat(),
        "schemaVersion": "1",
    }
    return Event(type=event_type, subject=f"orders/{order.id}", data=data)
