"""Holding: an item's row, kept from others until the transaction ends, before anything is decided on it."""

from tradepost.actions.change import Change
from tradepost.domain.record import Record, parents
from tradepost.storage.database import Row
from tradepost.storage.plain import plain


async def held(change: Change, record: type[Record], item_id: str, owner: str | None) -> Row | None:
    """The item's row; None if there is none, or if it is not the `owner`'s.

    Who changes a part holds the whole first, as whoever changes the whole does: no deadlock.
    """
    statements = plain(record)
    if owner is not None:
        mine = await change.tx.row(statements.exists_owned, id=item_id, owner=owner)
        if mine is None:
            return None
    for key, link in parents(record):
        if link.embedded:
            part = await change.tx.row(statements.get, id=item_id)
            if part is not None:
                await change.tx.row(plain(link.parent).lock, id=part[statements.names.index(key.name)])
    row = await change.tx.row(statements.lock, id=item_id)
    return None if row is None else tuple(row)
