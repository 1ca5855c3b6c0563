"""What a file gives: one entity as it stood there, not judged yet."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple, Protocol

from tradepost.domain.record import Record


class Given(NamedTuple):
    """One entity of a file: the line it begins at, its members (JSON, or read already), and its own text.

    `fault` says why it could not be read as an entity at all; its members mean nothing then.
    """

    line: int
    members: bytes | Mapping[str, Any]
    kept: Any
    fault: str | None = None


NOTHING = Given(0, b"", None)


class Shape(NamedTuple):
    """How rows of a file become entities: the row's record, and its lines' if an entity has several rows."""

    row: type[Record]
    line: type[Record] | None = None


class Reader(Protocol):
    """A file in some format."""

    def __iter__(self) -> Iterator[Given]:
        """Its entities."""

    def aside(self, file: BinaryIO) -> "Aside":
        """Where entities of this file are kept that were rejected: a file of the same format."""


class Aside(Protocol):
    """Rejected entities, with the reason, as they can be mended and read again."""

    def keep(self, given: Given, reason: str) -> None:
        """Writes one."""


class Writer(Protocol):
    """A file that is written, in some format."""

    def write(self, entities: Iterable[Mapping[str, Any]]) -> None:
        """Writes entities, each with its members as the file has them."""
