"""Looking up many at once: one statement for all that a batch asks, and none where it asks nothing."""

from collections.abc import Iterable

from tradepost.actions.change import Change
from tradepost.domain.record import Record
from tradepost.storage.database import Row
from tradepost.storage.statement import Statement
from tradepost.storage.statements import identities


async def rows(
    change: Change, statement: Statement, name: str, wanted: Iterable[str | None], **given: str
) -> list[Row]:
    """The rows of a statement that takes a list of texts as its parameter `name`."""
    asked = sorted({each for each in wanted if each is not None})
    if not asked:
        return []
    return await change.tx.rows(statement, **{name: asked}, **given)


async def ids(change: Change, record: type[Record], wanted: Iterable[str | None]) -> set[str]:
    """Of these ids those that are taken."""
    return {row[0] for row in await rows(change, identities.BY_ID[record], "ids", wanted)}
