"""Products: look-ups by filters, and changes of stock within a transaction."""

from functools import cache

from sqlalchemy import ColumnElement, bindparam, func, select

from tradepost.domain.product import Product
from tradepost.storage.record_statements import statements_of
from tradepost.storage.statement import ONE, Statement, in_list
from tradepost.storage.tables import BIG, products, users

_c = products.c

FOR_ORDER = Statement(
    "the products of an order, locked in the order of their ids so that buyers never deadlock",
    select(_c.id, _c.sku, _c.name, _c.price, _c.currency, _c.stock, _c.status, _c.deleted_at)
    .where(in_list(_c.id, "ids"))
    .order_by(_c.id)
    .with_for_update(key_share=True),
)

BASKET = Statement(
    "the products of an order, locked, each with the status of the user who orders: one round trip for both",
    select(
        *FOR_ORDER.clause.selected_columns,  # type: ignore[attr-defined]
        select(users.c.status)
        .where(users.c.id == bindparam("user_id"), users.c.deleted_at.is_(None))
        .scalar_subquery(),
    )
    .where(in_list(_c.id, "ids"))
    .order_by(_c.id)
    .with_for_update(key_share=True, of=products),
)

MOVE_STOCK = Statement(
    "takes pieces from a product's stock, or returns them if negative; untracked stock stays null",
    products.update()
    .where(_c.id == bindparam("product_id"), _c.stock.is_not(None))
    .values(
        stock=_c.stock - bindparam("pieces", type_=_c.stock.type),
        version=_c.version + ONE,
        updated_at=bindparam("now"),
    ),
)

_FILTERS: dict[str, ColumnElement[bool]] = {
    "after": _c.id > bindparam("after"),
    "ids": in_list(_c.id, "ids"),
    "sku": _c.sku == bindparam("sku"),
    "status": _c.status == bindparam("status"),
    "currency": _c.currency == bindparam("currency"),
    "search": func.tradepost_fold(_c.name).like(func.tradepost_fold(bindparam("search")), escape="\\"),
    "price_min": _c.price >= bindparam("price_min", type_=BIG),
    "price_max": _c.price <= bindparam("price_max", type_=BIG),
    "in_stock": _c.stock.is_(None) | (_c.stock > 0),
    "out_of_stock": _c.stock == 0,
}
_INDEXED = frozenset({"after", "ids", "sku"})


@cache
def page(filters: frozenset[str]) -> Statement:
    """The products that meet all the named filters, in the order of their ids, up to `limit`.

    `search` is a pattern for LIKE; `in_stock` and `out_of_stock` take no value.
    """
    conditions = [_FILTERS[name] for name in sorted(filters)]
    chosen = select(*statements_of(Product).columns).where(*statements_of(Product).visible(), *conditions)
    return Statement(
        f"a page of products by {', '.join(sorted(filters)) or 'id'}",
        chosen.order_by(_c.id).limit(bindparam("limit", type_=BIG)),
        bounded=filters <= _INDEXED or bool(filters & {"ids", "sku"}),
    )
