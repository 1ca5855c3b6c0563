"""The schema: what is measured. Its types are read off the ORM's rows, which resolvers return as they are."""

import base64
from collections.abc import AsyncIterator
from enum import StrEnum
from typing import TypeAlias, cast

import strawberry
from sqlalchemy import select
from strawberry.extensions import ParserCache, SchemaExtension, ValidationCache

from benchmarks.peers.fastapi_sqlalchemy import tables
from benchmarks.peers.fastapi_sqlalchemy.placing import place
from benchmarks.peers.fastapi_sqlalchemy.schemas import LineItemIn, OrderIn
from benchmarks.peers.strawberry_sqlalchemy.context import Context

Info: TypeAlias = strawberry.Info[Context, None]


@strawberry.enum
class OrderStatus(StrEnum):
    PENDING = "PENDING"
    FULFILLED = "FULFILLED"
    CANCELLED = "CANCELLED"


@strawberry.enum
class ProductStatus(StrEnum):
    ACTIVE = "ACTIVE"
    ARCHIVED = "ARCHIVED"


@strawberry.type
class Product:
    id: strawberry.ID
    sku: str
    name: str
    description: str | None
    price: float
    currency: str
    stock: int | None
    status: ProductStatus


@strawberry.type
class LineItem:
    id: strawberry.ID
    quantity: int
    unit_price: float
    total: float
    sku: str
    name: str
    product_id: strawberry.Private[str]

    @strawberry.field
    async def product(self, info: Info) -> Product | None:
        return cast("Product | None", await info.context.products.load(self.product_id))


@strawberry.type
class Order:
    id: strawberry.ID
    total: float
    currency: str
    status: OrderStatus

    @strawberry.field
    async def line_items(self, info: Info) -> list[LineItem]:
        return cast("list[LineItem]", await info.context.line_items.load(self.id))


@strawberry.type
class OrderEdge:
    cursor: str
    node: Order


@strawberry.type
class PageInfo:
    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None


@strawberry.type
class OrderConnection:
    edges: list[OrderEdge]
    page_info: PageInfo


@strawberry.type
class User:
    id: strawberry.ID
    name: str
    email: str

    @strawberry.field
    async def orders(self, info: Info, first: int = 20, after: str | None = None) -> OrderConnection:
        info.context.require("orders:read")
        query = select(tables.Order).where(tables.Order.user_id == self.id)
        if after is not None:
            query = query.where(tables.Order.id > _position(after))
        found = await info.context.all(query.order_by(tables.Order.id).limit(min(first, 100) + 1))
        return _connection(found, min(first, 100), after)


@strawberry.input
class LineItemInput:
    product_id: strawberry.ID
    quantity: int


@strawberry.input
class CreateOrderInput:
    user_id: strawberry.ID
    line_items: list[LineItemInput]


@strawberry.type
class Query:
    @strawberry.field
    async def user(self, info: Info, id: strawberry.ID) -> User | None:  # noqa: A002 (the contract's name)
        info.context.require("users:read")
        return cast("User | None", await info.context.get(tables.User, id))

    @strawberry.field
    async def products(
        self, info: Info, first: int = 50, after: strawberry.ID | None = None
    ) -> list[Product]:
        info.context.require("products:read")
        query = select(tables.Product).order_by(tables.Product.id).limit(min(first, 200))
        if after is not None:
            query = query.where(tables.Product.id > after)
        return cast("list[Product]", await info.context.all(query))


@strawberry.type
class Mutation:
    @strawberry.mutation
    async def create_order(
        self,
        info: Info,
        input: CreateOrderInput,  # noqa: A002 (the contract's name)
    ) -> Order:
        info.context.require("orders:write")
        lines = [LineItemIn(product_id=each.product_id, quantity=each.quantity) for each in input.line_items]
        async with info.context.sessions.writing() as session:
            order = await place(session, OrderIn(user_id=input.user_id, line_items=lines))
            await session.commit()
        info.context.line_items.prime(order.id, order.line_items)
        return cast("Order", order)


class Session(SchemaExtension):
    """The session ends with the operation."""

    async def on_operation(self) -> AsyncIterator[None]:
        context: Context = self.execution_context.context
        async with context.session:
            yield


schema = strawberry.Schema(Query, Mutation, extensions=[Session, ParserCache, ValidationCache])


def _connection(found: list[tables.Order], first: int, after: str | None) -> OrderConnection:
    edges = [OrderEdge(cursor=_cursor(order.id), node=cast("Order", order)) for order in found[:first]]
    info = PageInfo(
        has_next_page=len(found) > first,
        has_previous_page=after is not None,
        start_cursor=edges[0].cursor if edges else None,
        end_cursor=edges[-1].cursor if edges else None,
    )
    return OrderConnection(edges=edges, page_info=info)


def _cursor(position: str) -> str:
    return base64.urlsafe_b64encode(position.encode()).decode()


def _position(cursor: str) -> str:
    return base64.urlsafe_b64decode(cursor).decode()
