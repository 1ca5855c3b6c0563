"""The file of rejected entities, created with the first one."""

from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tradepost.transfer.file_entity import EntityReader, FileEntity, RejectsWriter
from tradepost.transfer.stream import Source, Unreadable


class Rejects:
    """The file at `path`, in the format of the source; `count` is the number of its entities."""

    def __init__(self, reader: EntityReader, source: Source, path: Path) -> None:
        if source.is_at(path):
            raise Unreadable("the file cannot receive its own rejects: choose another with --rejects")
        self.count = 0
        self._path = path
        self._reader = reader
        self._writer: RejectsWriter | None = None
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def write(self, entity: FileEntity, reason: str) -> None:
        """Writes an entity with its line and the reason. Raises `Unreadable` if that fails."""
        if self._writer is None:
            self._writer = self._created()
        self._writer.write(entity, f"line {entity.line}: {reason}")
        self.count += 1

    def _created(self) -> RejectsWriter:
        try:
            file = self._open.enter_context(self._path.open("wb"))
        except OSError as error:
            raise Unreadable(f"cannot write rejects to {self._path}: {error.strerror}") from None
        return self._reader.rejects_writer(file)
