"""Look-ups for imports: existing entities by their names and ids, and the data that orders need of them."""

from sqlalchemy import Select, select

from tradepost.domain.address import Address
from tradepost.domain.order import Order
from tradepost.domain.product import Product
from tradepost.domain.record import Record
from tradepost.domain.user import User
from tradepost.storage.record_statements import statements_of
from tradepost.storage.statement import Statement, in_list
from tradepost.storage.tables import addresses, products, table, users

_p = products.c
_priced: Select[tuple[str, str, str, int, str]] = select(_p.id, _p.sku, _p.name, _p.price, _p.currency)

USERS_BY_EMAIL = Statement(
    "the users with these emails",
    select(users.c.email_key, users.c.id).where(
        users.c.deleted_at.is_(None), in_list(users.c.email_key, "names")
    ),
)

PRODUCTS_BY_SKU = Statement(
    "those of these skus that products have",
    select(_p.sku).where(_p.deleted_at.is_(None), in_list(_p.sku, "names")),
)

PRICED_BY_SKU = Statement(
    "the products with these skus, with the columns for line items",
    _priced.where(_p.deleted_at.is_(None), in_list(_p.sku, "names")),
)

PRICED_BY_ID = Statement(
    "the products with these ids, including deleted ones, with the columns for line items",
    _priced.where(in_list(_p.id, "ids")),
)

ADDRESSES = Statement(
    "the addresses with these ids",
    select(*statements_of(Address).columns).where(in_list(addresses.c.id, "ids")),
)

ADDRESSES_OF = Statement(
    "the addresses of these users",
    select(*statements_of(Address).columns).where(in_list(addresses.c.user_id, "ids")),
)


def _by_id(record: type[Record]) -> Statement:
    """Deleted items are included, because their ids cannot be used again."""
    column = table(record).c.id
    return Statement(
        f"those of these ids that {record.plural} have", select(column).where(in_list(column, "ids"))
    )


BY_ID: dict[type[Record], Statement] = {record: _by_id(record) for record in (User, Address, Product, Order)}
