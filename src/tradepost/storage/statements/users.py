"""Users: the facts that orders depend on."""

from sqlalchemy import bindparam, select

from tradepost.storage.statement import Statement
from tradepost.storage.tables import users

STATUS = Statement(
    "the status of a user",
    select(users.c.status).where(users.c.id == bindparam("id"), users.c.deleted_at.is_(None)),
)
