"""Stock: taken and given back by order lines, in the transaction that changes the lines.

Products are locked in the order of their ids before anything is decided, so that two buyers never deadlock
and never both get the last piece.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tradepost.actions.change import Change
from tradepost.storage.statements import products, users


class LockedProduct(NamedTuple):
    """A product, locked until the transaction ends."""

    id: str
    sku: str
    name: str
    price: int
    currency: str
    stock: int | None
    status: str
    deleted_at: str | None


Products = Mapping[str, LockedProduct]  # by id


def pieces_of(lines: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The pieces of each product, of lines of (product id, quantity)."""
    pieces: dict[str, int] = {}
    for product_id, quantity in lines:
        pieces[product_id] = pieces.get(product_id, 0) + quantity
    return pieces


async def lock(change: Change, product_ids: Iterable[str]) -> Products:
    """The products with these ids, locked; unknown ids are missing."""
    rows = await change.tx.rows(products.FOR_ORDER, ids=sorted(set(product_ids)))
    return {product.id: product for product in map(LockedProduct._make, rows)}


async def lock_for(change: Change, product_ids: Iterable[str], user_id: str) -> tuple[Products, str | None]:
    """The products, locked, and the status of the user who orders; None if there is no such user."""
    rows = await change.tx.rows(products.BASKET, ids=sorted(set(product_ids)), user_id=user_id)
    if rows:
        *_, status = rows[0]
        return {product.id: product for product in (LockedProduct(*row[:-1]) for row in rows)}, status
    user = await change.tx.row(users.STATUS, id=user_id)
    return {}, user[0] if user else None


async def take(change: Change, locked: Products, pieces: Mapping[str, int]) -> None:
    """Takes pieces from the stock of locked products, by product id; negative pieces are given back."""
    moves = [
        {"product_id": product_id, "pieces": count, "now": change.now_at}
        for product_id, count in pieces.items()
        if count and locked[product_id].stock is not None
    ]
    if len(moves) == 1:
        await change.tx.run(products.MOVE_STOCK, **moves[0])
    elif moves:
        await change.tx.many(products.MOVE_STOCK, moves)
