"""Users, as an order needs them."""

from sqlalchemy import bindparam, select

from tradepost.storage.statement import Statement
from tradepost.storage.tables import users

STATUS = Statement(
    "whether a user may order",
    select(users.c.status).where(users.c.id == bindparam("id"), users.c.deleted_at.is_(None)),
)
