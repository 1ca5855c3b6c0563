"""What an engine offers: reads that each see one moment, and writing transactions that happen or do not.

An action is given a `Writing` and awaits nothing else. On SQLite it therefore runs from end to end without
interruption, between two turns of the event loop; on PostgreSQL it is a transaction like any other.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from tradepost.storage.statement import Statement

T = TypeVar("T")

Row = tuple[Any, ...]
Noticed = Callable[[], None]


class UniqueViolation(Exception):
    """A row with this value exists already."""

    def __init__(self, table: str, column: str) -> None:
        super().__init__(f"{table}.{column}")
        self.table = table
        self.column = column


class Reading(Protocol):
    """Reads committed rows; every statement sees one moment. Counts its statements and their time."""

    statements: int
    nanoseconds: int

    async def row(self, statement: Statement, **given: Any) -> Row | None:
        """The first row, or None."""

    async def rows(self, statement: Statement, **given: Any) -> list[Row]:
        """All rows."""


class Meter(Protocol):
    """Counts what readers and transactions took."""

    def add(self, reading: Reading) -> None:
        """Adds the statements and the time of a reader or a transaction."""


class Writing(Reading, Protocol):
    """One transaction. What it changes becomes durable and visible together, or not at all.

    `late_ms` is how long after others looked at the clock they may still commit.
    """

    late_ms: int

    async def run(self, statement: Statement, **given: Any) -> int:
        """Changes rows; how many. Raises `UniqueViolation`."""

    async def many(self, statement: Statement, sets: Iterable[Mapping[str, Any]]) -> None:
        """Runs one statement for each set of parameters, in one round trip."""


class Database(Protocol):
    """An engine with its connections."""

    name: str

    async def start(self) -> None:
        """Opens the connections."""

    async def stop(self) -> None:
        """Waits for what runs and closes them."""

    def reading(self) -> Reading:
        """A reader for one request."""

    async def write(self, work: Callable[[Writing], Awaitable[T]]) -> T:
        """Runs `work` in one transaction and returns once that is durable.

        If `work` raises, nothing of it remains. It may be run again when a race was lost; a race lost too
        often is `Conflict`, a database out of reach `Unavailable`.
        """

    def wake(self) -> None:
        """Hints to all who watch, in any process on this database, that events were committed.

        Called on the loop, after the commit. Costs next to nothing and never fails: a hint may be lost.
        """

    def watch(self, noticed: Noticed) -> None:
        """Calls `noticed` on the loop soon after events were committed, from now on.

        It is also called when there may have been hints that were not heard, and now and then for nothing.
        Hints may be lost: whoever must not miss anything looks for himself at times. `noticed` is to be
        cheap and not to raise.
        """

    async def unwatch(self, noticed: Noticed) -> None:
        """Never calls `noticed` again. Once nobody watches, watching costs nothing."""

    async def schema_version(self) -> str | None:
        """The migration the schema is at; None on an empty database."""

    async def migrate(self) -> None:
        """Brings the schema to the newest version in one transaction; others that try meanwhile wait."""
