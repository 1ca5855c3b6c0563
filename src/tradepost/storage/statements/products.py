"""Stock: taken and given back within the transaction that needs it."""

from sqlalchemy import bindparam, select

from tradepost.storage.statement import Statement, among
from tradepost.storage.tables import products, users

_c = products.c

FOR_ORDER = Statement(
    "the products an order names, held in the order of their ids so that buyers never deadlock",
    select(_c.id, _c.sku, _c.name, _c.price, _c.currency, _c.stock, _c.status, _c.deleted_at)
    .where(among(_c.id, "ids"))
    .order_by(_c.id)
    .with_for_update(key_share=True),
)

BASKET = Statement(
    "the same, each beside the state of the user who orders: one round trip for both",
    select(
        *FOR_ORDER.clause.selected_columns,  # type: ignore[attr-defined]
        select(users.c.status)
        .where(users.c.id == bindparam("user_id"), users.c.deleted_at.is_(None))
        .scalar_subquery(),
    )
    .where(among(_c.id, "ids"))
    .order_by(_c.id)
    .with_for_update(key_share=True, of=products),
)

MOVE_STOCK = Statement(
    "takes pieces from a product's stock, or gives them back when negative; untracked stock stays null",
    products.update()
    .where(_c.id == bindparam("product_id"), _c.stock.is_not(None))
    .values(
        stock=_c.stock - bindparam("pieces", type_=_c.stock.type),
        version=_c.version + 1,
        updated_at=bindparam("now"),
    ),
)
