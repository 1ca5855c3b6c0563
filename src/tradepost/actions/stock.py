"""Stock: taken by lines, given back by them, within the transaction that changes the lines.

Products are held in the order of their ids before anything is decided, so two buyers never deadlock and
never both get the last piece.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tradepost.actions.change import Change
from tradepost.storage.statements import products, users


class Held(NamedTuple):
    """A product, held until the transaction ends."""

    id: str
    sku: str
    name: str
    price: int
    currency: str
    stock: int | None
    status: str
    deleted_at: str | None


async def hold(change: Change, product_ids: Iterable[str]) -> dict[str, Held]:
    """The products with these ids, held; unknown ids are missing from the answer."""
    rows = await change.tx.rows(products.FOR_ORDER, ids=sorted(set(product_ids)))
    return {row[0]: Held(*row) for row in rows}


async def basket(
    change: Change, product_ids: Iterable[str], user_id: str
) -> tuple[dict[str, Held], str | None]:
    """The products held, and the state of the user who orders; None if there is no such user."""
    rows = await change.tx.rows(products.BASKET, ids=sorted(set(product_ids)), user_id=user_id)
    if rows:
        return {row[0]: Held(*row[:-1]) for row in rows}, rows[0][-1]
    found = await change.tx.row(users.STATUS, id=user_id)
    return {}, found[0] if found else None


async def move(change: Change, held: Mapping[str, Held], pieces: Mapping[str, int]) -> None:
    """Takes pieces from the stock of held products; gives back where negative."""
    moves = [
        {"product_id": product_id, "pieces": count, "now": change.now}
        for product_id, count in pieces.items()
        if count and held[product_id].stock is not None
    ]
    if len(moves) == 1:
        await change.tx.run(products.MOVE_STOCK, **moves[0])
    elif moves:
        await change.tx.many(products.MOVE_STOCK, moves)
