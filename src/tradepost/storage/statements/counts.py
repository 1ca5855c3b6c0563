"""Numbers of rows."""

from sqlalchemy import func, literal, select, union_all

from tradepost.storage.statement import Statement
from tradepost.storage.tables import api_keys, orders, products, users

USERS = Statement(
    "the number of users, with deleted ones", select(func.count()).select_from(users), bounded=False
)
PRODUCTS = Statement(
    "the number of products, including deleted ones",
    select(func.count()).select_from(products),
    bounded=False,
)
KEYS = Statement(
    "the number of keys that are not revoked",
    select(func.count()).select_from(api_keys).where(api_keys.c.revoked_at.is_(None)),
)
ANYTHING = Statement(
    "a row if there is any user, product or order, including deleted ones",
    union_all(
        *[select(literal(1)).where(select(each.c.id).limit(1).exists()) for each in (users, products, orders)]
    ),
)
