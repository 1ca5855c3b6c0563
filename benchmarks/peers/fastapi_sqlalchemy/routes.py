"""The routes that are measured, and those by which ids are looked up."""

from fastapi import APIRouter, Depends, HTTPException, Response
from sqlalchemy import select
from sqlalchemy.orm import selectinload

from benchmarks.peers.fastapi_sqlalchemy.access import require
from benchmarks.peers.fastapi_sqlalchemy.database import SessionDependency
from benchmarks.peers.fastapi_sqlalchemy.listing import Listed, Listing, PagerDependency
from benchmarks.peers.fastapi_sqlalchemy.placing import place
from benchmarks.peers.fastapi_sqlalchemy.schemas import OrderIn, OrderOut, Page, ProductOut, StockIn, UserOut
from benchmarks.peers.fastapi_sqlalchemy.tables import Order, Product, User

router = APIRouter(prefix="/v1")


@router.get("/users", response_model=Page[UserOut], dependencies=[Depends(require("users:read"))])
async def list_users(pager: PagerDependency) -> Listing:
    return await pager.page(select(User), User)


@router.get("/products", response_model=Page[ProductOut], dependencies=[Depends(require("products:read"))])
async def list_products(pager: PagerDependency) -> Listing:
    return await pager.page(select(Product), Product)


@router.get(
    "/products/{product_id}", response_model=ProductOut, dependencies=[Depends(require("products:read"))]
)
async def get_product(product_id: str, session: SessionDependency) -> Product:
    return _found(await session.get(Product, product_id))


@router.patch(
    "/products/{product_id}", response_model=ProductOut, dependencies=[Depends(require("products:write"))]
)
async def change_stock(product_id: str, body: StockIn, session: SessionDependency) -> Product:
    product = _found(await session.get(Product, product_id))
    product.stock = body.stock
    await session.commit()
    return product


@router.get("/orders", response_model=Page[OrderOut], dependencies=[Depends(require("orders:read"))])
async def list_orders(pager: PagerDependency) -> Listing:
    return await pager.page(select(Order).options(selectinload(Order.line_items)), Order)


@router.get("/orders/{order_id}", response_model=OrderOut, dependencies=[Depends(require("orders:read"))])
async def get_order(order_id: str, session: SessionDependency) -> Order:
    return _found(await session.get(Order, order_id, options=[selectinload(Order.line_items)]))


@router.post(
    "/orders", response_model=OrderOut, status_code=201, dependencies=[Depends(require("orders:write"))]
)
async def place_order(body: OrderIn, session: SessionDependency, response: Response) -> Order:
    order = await place(session, body)
    await session.commit()
    response.headers["Location"] = f"/v1/orders/{order.id}"
    return order


def _found(row: Listed | None) -> Listed:
    if row is None:
        raise HTTPException(404, "Not found")
    return row
