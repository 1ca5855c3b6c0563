"""Orders and their line items."""

from sqlalchemy import bindparam, func, select

from tradepost.domain.line_item import LineItem
from tradepost.storage.record_statements import statements_of
from tradepost.storage.statement import ONE, Statement
from tradepost.storage.tables import line_items, orders

LINES = Statement(
    "the line items of an order",
    select(*statements_of(LineItem).columns)
    .where(line_items.c.order_id == bindparam("order_id"))
    .order_by(line_items.c.id),
)

DELETE_LINES = Statement(
    "deletes the line items of an order",
    line_items.delete().where(line_items.c.order_id == bindparam("order_id")),
)

RETOTAL = Statement(
    "sets the total of an order to the sum of its line items, as a new version",
    orders.update()
    .where(orders.c.id == bindparam("order_id"))
    .values(
        total=select(func.coalesce(func.sum(line_items.c.total), 0))
        .where(line_items.c.order_id == bindparam("order_id"))
        .scalar_subquery(),
        version=orders.c.version + ONE,
        updated_at=bindparam("now"),
    ),
)
