"""Lookups for a batch of orders: the users, products and addresses they name, and the orders that exist."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tradepost.actions.change import Change
from tradepost.domain.address import Address
from tradepost.domain.input import Values
from tradepost.domain.order import Order
from tradepost.storage.record_statements import statements_of
from tradepost.storage.statements import identities, references
from tradepost.transfer import lookup
from tradepost.transfer.owners import Owners, owners


class Priced(NamedTuple):
    """The columns of a product that lines need."""

    id: str
    sku: str
    name: str
    price: int
    currency: str


class OrderLookups(NamedTuple):
    """Everything that a batch of orders names and that exists."""

    references: set[str]
    orders: set[str]
    users: Owners
    by_sku: dict[str, Priced]
    by_id: dict[str, Priced]
    addresses: dict[str, Address]

    def product(self, line: Any) -> Priced | None:
        """The product of a line, by its productId or otherwise by its sku."""
        return self.by_sku.get(line.sku) if line.product_id is None else self.by_id.get(line.product_id)


async def look_up(change: Change, orders: Sequence[Values]) -> OrderLookups:
    """Looks up everything that orders name."""
    lines = [line for order in orders for line in order["line_items"]]
    skus = {line.sku for line in lines if line.product_id is None}
    product_ids = {line.product_id for line in lines}
    wanted = [order["reference"] for order in orders]
    known = await lookup.rows(change, references.KNOWN, "references", wanted, kind=Order.kind)
    by_sku = await lookup.rows(change, identities.PRICED_BY_SKU, "names", skus)
    by_id = await lookup.rows(change, identities.PRICED_BY_ID, "ids", product_ids)
    return OrderLookups(
        references={row[0] for row in known},
        orders=await lookup.ids(change, Order, [order["id"] for order in orders]),
        users=await owners(change, orders),
        by_sku={row[1]: Priced(*row) for row in by_sku},
        by_id={row[0]: Priced(*row) for row in by_id},
        addresses=await _addresses(change, orders),
    )


async def _addresses(change: Change, orders: Sequence[Values]) -> dict[str, Address]:
    """The addresses of orders that only have an address id."""
    wanted = [order["shipping_address_id"] for order in orders if order["shipping_address"] is None]
    rows = await lookup.rows(change, identities.ADDRESSES, "ids", wanted)
    addresses = [statements_of(Address).load(row) for row in rows]
    return {each.id: each for each in addresses if isinstance(each, Address)}
