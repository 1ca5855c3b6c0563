"""Locking an item until the transaction ends, before anything is decided on it."""

from tradepost.actions.change import Change
from tradepost.domain.record import parents
from tradepost.storage.record_statements import R, statements_of


async def locked(change: Change, record: type[R], item_id: str, owner: str | None) -> R | None:
    """The item, locked; None if there is none, or if it does not belong to the user `owner`.

    The parent of an embedded item is locked first, as every change of the parent does: no deadlock.
    """
    statements = statements_of(record)
    if owner is not None:
        mine = await change.tx.row(statements.exists_owned, id=item_id, owner=owner)
        if mine is None:
            return None
    for key, link in parents(record):
        if link.embedded:
            child = await change.tx.row(statements.get, id=item_id)
            if child is not None:
                parent_id = getattr(statements.load(child), key.name)
                await change.tx.row(statements_of(link.parent).lock, id=parent_id)
    row = await change.tx.row(statements.lock, id=item_id)
    return None if row is None else statements.load(row)
