"""What the resolvers of one request work with."""

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
    """Who asks, what is read with, and what was loaded so far: of one request and no other."""

    caller: Caller
    reading: Reading
    columns: Mapping[str, frozenset[int]] | None = None  # that the operation looks at, by type; None: at all

    def admit(self, resource: Resource) -> None:
        """Raises `Forbidden` unless the caller may read the resource."""
        self.caller.require(resource.read_scope)
        if self.caller.user_id is not None and not resource.is_open_to_user_keys("GET"):
            self.caller.forbid_user_keys()

    def narrowed(self, statement: Statement, record: type[Record], key_at: int = 0) -> Statement:
        """A statement for rows of a record that reads, beside the id and a key, what is looked at alone."""
        if self.columns is None:
            return statement
        return statement.narrowed(self.columns.get(record.__name__, _ID) | {0, key_at})

    def owns(self, resource: Resource) -> bool:
        """Whether the caller is shown what is theirs of the resource, and nothing else of it."""
        return self.caller.user_id is not None and resource.user_keys == "own"
