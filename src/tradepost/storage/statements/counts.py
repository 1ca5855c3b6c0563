"""How much there is."""

from sqlalchemy import func, literal, select, union_all

from tradepost.storage.statement import Statement
from tradepost.storage.tables import api_keys, orders, products, users

USERS = Statement("how many users there ever were", select(func.count()).select_from(users), bounded=False)
PRODUCTS = Statement(
    "how many products there ever were", select(func.count()).select_from(products), bounded=False
)
KEYS = Statement(
    "how many keys were not revoked",
    select(func.count()).select_from(api_keys).where(api_keys.c.revoked_at.is_(None)),
)
ANYTHING = Statement(
    "a row if there is or was any user, product or order",
    union_all(
        *[select(literal(1)).where(select(each.c.id).limit(1).exists()) for each in (users, products, orders)]
    ),
)
