"""What orders name: users, products, addresses, and whether they are there themselves; a batch at a time."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tradepost.actions.change import Change
from tradepost.domain.address import Address
from tradepost.domain.input import Values
from tradepost.domain.order import Order
from tradepost.storage.plain import plain
from tradepost.storage.statements import identities, references
from tradepost.transfer import lookup
from tradepost.transfer.owners import Owners, owners


class Priced(NamedTuple):
    """What lines need to know of a product."""

    id: str
    sku: str
    name: str
    price: int
    currency: str


class Names(NamedTuple):
    """Of all that a batch of orders names, what is there."""

    references: set[str]
    orders: set[str]
    users: Owners
    by_sku: dict[str, Priced]
    by_id: dict[str, Priced]
    addresses: dict[str, Address]

    def product(self, line: Any) -> Priced | None:
        """The product of a line: the one with its productId, else the one with its sku."""
        return self.by_sku.get(line.sku) if line.product_id is None else self.by_id.get(line.product_id)


async def names(change: Change, orders: Sequence[Values]) -> Names:
    """Looks up what orders name."""
    lines = [line for order in orders for line in order["line_items"]]
    skus = {line.sku for line in lines if line.product_id is None}
    product_ids = {line.product_id for line in lines}
    wanted = [order["reference"] for order in orders]
    known = await lookup.rows(change, references.KNOWN, "references", wanted, kind=Order.kind)
    by_sku = await lookup.rows(change, identities.PRICED_BY_SKU, "names", skus)
    by_id = await lookup.rows(change, identities.PRICED_BY_ID, "ids", product_ids)
    return Names(
        references={row[0] for row in known},
        orders=await lookup.ids(change, Order, [order["id"] for order in orders]),
        users=await owners(change, orders),
        by_sku={row[1]: Priced(*row) for row in by_sku},
        by_id={row[0]: Priced(*row) for row in by_id},
        addresses=await _addresses(change, orders),
    )


async def _addresses(change: Change, orders: Sequence[Values]) -> dict[str, Address]:
    """The addresses of those orders that do not tell theirs."""
    wanted = [order["shipping_address_id"] for order in orders if order["shipping_address"] is None]
    found = [
        plain(Address).load(row) for row in await lookup.rows(change, identities.ADDRESSES, "ids", wanted)
    ]
    return {each.id: each for each in found if isinstance(each, Address)}
