"""An entity of a file before it is checked, and how files are read and written."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple, Protocol

from tradepost.domain.record import Record


class FileEntity(NamedTuple):
    """One entity of a file: the line it starts at, its members (as JSON or parsed), and its original text.

    If it could not be parsed, `fault` is the reason, and its members mean nothing.
    """

    line: int
    members: bytes | Mapping[str, Any]
    original: Any
    fault: str | None = None


NO_ENTITY = FileEntity(0, b"", None)


class RowShape(NamedTuple):
    """The record of a row, and that of a line if an entity has several rows."""

    row: type[Record]
    line: type[Record] | None = None


class EntityReader(Protocol):
    """A file that is read, in one of the formats."""

    def __iter__(self) -> Iterator[FileEntity]:
        """The entities of the file; raises `Unreadable` where the file is damaged."""

    def rejects_writer(self, file: BinaryIO) -> "RejectsWriter":
        """A writer of rejected entities to `file`, in the same format."""


class RejectsWriter(Protocol):
    """Writes rejected entities with the reason, so that they can be corrected and imported again."""

    def write(self, entity: FileEntity, reason: str) -> None:
        """Writes one rejected entity."""


class Writer(Protocol):
    """A file that is written, in one of the formats."""

    def write(self, entities: Iterable[Mapping[str, Any]]) -> None:
        """Writes entities, each by the names of its members."""
