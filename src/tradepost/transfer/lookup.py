"""Looking up all values of a batch in one statement, or in none if there are no values."""

from collections.abc import Iterable

from tradepost.actions.change import Change
from tradepost.domain.record import Record
from tradepost.storage.database import Row
from tradepost.storage.statement import Statement
from tradepost.storage.statements import identities


async def rows(
    change: Change, statement: Statement, name: str, wanted: Iterable[str | None], **parameters: str
) -> list[Row]:
    """The rows of a statement for the list `wanted`, which is its parameter `name`."""
    values = sorted({each for each in wanted if each is not None})
    if not values:
        return []
    return await change.tx.rows(statement, **{name: values}, **parameters)


async def ids(change: Change, record: type[Record], wanted: Iterable[str | None]) -> set[str]:
    """Those of the ids that exist."""
    return {row[0] for row in await rows(change, identities.BY_ID[record], "ids", wanted)}
