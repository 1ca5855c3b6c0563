"""The interface of an engine: reads that each see one snapshot, and atomic write transactions.

An action gets a `Writing` and awaits nothing else. So on SQLite it runs without interruption, between two
turns of the event loop; on PostgreSQL it is a transaction like any other.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from tradepost.storage.statement import Statement

T = TypeVar("T")

Row = tuple[Any, ...]
OnWakeup = Callable[[], None]


class UniqueViolation(Exception):
    """Another row has the value of a unique column; `id` stands for a primary key."""

    def __init__(self, table: str, column: str) -> None:
        super().__init__(f"{table}.{column}")
        self.table = table
        self.column = column


class Reading(Protocol):
    """Reads committed rows; each statement sees one snapshot. Counts its statements and their time.

    Its methods raise `Unavailable` if the database does not answer.
    """

    statements: int
    nanoseconds: int

    async def row(self, statement: Statement, **parameters: Any) -> Row | None:
        """The first row, or None."""

    async def rows(self, statement: Statement, **parameters: Any) -> list[Row]:
        """All rows."""


class Meter(Protocol):
    """Counts what readers and transactions took."""

    def add(self, reading: Reading) -> None:
        """Adds the statements and the time of a reader or a transaction."""


class Writing(Reading, Protocol):
    """One transaction. Its changes become durable and visible together, or not at all.

    `max_commit_delay_ms` is the longest time between reading the clock and the commit, in any transaction.
    """

    max_commit_delay_ms: int

    async def run(self, statement: Statement, **parameters: Any) -> int:
        """Changes rows and returns their number. Raises `UniqueViolation`."""

    async def many(self, statement: Statement, sets: Iterable[Mapping[str, Any]]) -> None:
        """Runs one statement for each set of parameters, in one round trip. Raises `UniqueViolation`."""


class Database(Protocol):
    """An engine with its connections."""

    name: str

    async def start(self) -> None:
        """Opens the connections. Raises `Unavailable`."""

    async def stop(self) -> None:
        """Waits for running transactions and closes the connections."""

    def reading(self) -> Reading:
        """A reader for one request."""

    async def write(self, work: Callable[[Writing], Awaitable[T]]) -> T:
        """Runs `work` in one transaction and returns its result once that is durable.

        If `work` raises, the transaction is rolled back. `work` runs again after a lost race. Raises
        `Conflict` after too many lost races, and `Unavailable` if the database cannot be reached.
        """

    def wake(self) -> None:
        """Wakes the listeners of all processes on this database after events were committed.

        Call it on the event loop, after the commit. It is cheap and never fails, but a wake-up can be lost.
        """

    def watch(self, on_wakeup: OnWakeup) -> None:
        """Registers a listener, which is called on the event loop soon after events are committed.

        It is also called when wake-ups may have been lost, and sometimes without reason. Wake-ups can be
        lost, so listeners that must not miss events also poll. `on_wakeup` must be fast and must not raise.
        """

    async def unwatch(self, on_wakeup: OnWakeup) -> None:
        """Removes a listener. Watching costs nothing once there are no listeners."""

    async def schema_version(self) -> str | None:
        """The newest migration that was applied; None on an empty database. Raises `Unavailable`."""

    async def migrate(self) -> None:
        """Applies the missing migrations in one transaction, while other processes that migrate wait."""
