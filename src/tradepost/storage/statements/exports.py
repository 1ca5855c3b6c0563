"""Pages of users, addresses and products for exports, with the deleted ones that orders still refer to."""

from sqlalchemy import bindparam, exists, or_, select

from tradepost.domain.address import Address
from tradepost.domain.product import Product
from tradepost.domain.user import User
from tradepost.storage.record_statements import statements_of
from tradepost.storage.statement import Statement
from tradepost.storage.tables import BIG, addresses, line_items, orders, products, users

_u, _a, _p = users.c, addresses.c, products.c

USERS = Statement(
    "a page of users, including deleted ones that have orders",
    select(*statements_of(User).columns, _u.deleted_at)
    .where(
        _u.id > bindparam("after_id"),
        or_(_u.deleted_at.is_(None), exists().where(orders.c.user_id == _u.id)),
    )
    .order_by(_u.id)
    .limit(bindparam("limit", type_=BIG)),
)

ADDRESSES = Statement(
    "a page of the addresses of users who are not deleted",
    select(*statements_of(Address).columns)
    .join_from(addresses, users, _u.id == _a.user_id)
    .where(_a.id > bindparam("after_id"), _u.deleted_at.is_(None))
    .order_by(_a.id)
    .limit(bindparam("limit", type_=BIG)),
)

PRODUCTS = Statement(
    "a page of products, including deleted ones that have been ordered",
    select(*statements_of(Product).columns, _p.deleted_at)
    .where(
        _p.id > bindparam("after_id"),
        or_(_p.deleted_at.is_(None), exists().where(line_items.c.product_id == _p.id)),
    )
    .order_by(_p.id)
    .limit(bindparam("limit", type_=BIG)),
)
