"""Rejected entities, kept aside in a file that is made when the first one comes."""

from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tradepost.transfer.given import Aside, Given, Reader
from tradepost.transfer.stream import Source, Unreadable


class Rejects:
    """The file at `path`, of the same format as its source; `count` says how many are in it."""

    def __init__(self, reader: Reader, source: Source, path: Path) -> None:
        if source.is_at(path):
            raise Unreadable("cannot hold its own rejected rows: name another file with --rejects")
        self.count = 0
        self._path = path
        self._reader = reader
        self._aside: Aside | None = None
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def keep(self, given: Given, reason: str) -> None:
        """Keeps one, with the line it stood at and the reason. Raises `Unreadable` if that is impossible."""
        if self._aside is None:
            self._aside = self._begun()
        self._aside.keep(given, f"line {given.line}: {reason}")
        self.count += 1

    def _begun(self) -> Aside:
        try:
            file = self._open.enter_context(self._path.open("wb"))
        except OSError as error:
            raise Unreadable(f"has rows to reject, but {self._path}: {error.strerror}") from None
        return self._reader.aside(file)
