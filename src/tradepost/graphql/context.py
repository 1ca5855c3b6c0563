"""What the resolvers of one request work with: who asks, what is read with, and what was loaded."""

from collections.abc import Mapping
from dataclasses import dataclass

from tradepost.access.caller import Caller
from tradepost.domain.record import Record
from tradepost.graphql.loads import Loads
from tradepost.resource import Resource
from tradepost.storage.database import Reading
from tradepost.storage.statement import Statement

_ID = frozenset([0])


@dataclass(slots=True, eq=False)
class Context(Loads):
    """The context of one request, never shared with another."""

    caller: Caller
    reading: Reading
    columns: Mapping[str, frozenset[int]] | None = (
        None  # positions of rows that the operation reads, by type; None: all
    )

    def admit(self, resource: Resource) -> None:
        """Raises `Forbidden` without the scope to read the resource, and where user keys may not read it."""
        resource.permissions["GET"].check(self.caller)

    def projected(self, statement: Statement, record: type[Record], key_at: int = 0) -> Statement:
        """A statement for rows that have, besides the id and a key, only the columns that are read."""
        if self.columns is None:
            return statement
        return statement.projected(self.columns.get(record.__name__, _ID) | {0, key_at})

    def owns(self, resource: Resource) -> bool:
        """Whether the caller is shown only rows of their own user."""
        return resource.permissions["GET"].owner(self.caller) is not None
