"""Files: opened by name or as the standard streams, packed or plain, read in lines of bounded length."""

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO, Literal, NamedTuple, cast

Format = Literal["csv", "jsonl"]

STANDARD = "-"
MAX_LINE = 1024 * 1024  # as the largest body of a request
_ENDINGS: dict[str, Format] = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_GZIP = b"\x1f\x8b"
_PACK_LEVEL = 6


class Unreadable(Exception):
    """A file that cannot be read at all; the message says why."""


class Line(NamedTuple):
    """A line with its number; `whole` unless it was longer than lines may be."""

    number: int
    content: bytes
    whole: bool


class Source:
    """A file being read. `size` and `position` are bytes on the disk; 0 where that means nothing."""

    def __init__(self, raw: io.BufferedReader) -> None:
        self._raw = raw
        self._measured = raw.seekable()
        self.size = os.fstat(raw.fileno()).st_size if self._measured else 0
        packed = raw.peek(2)[:2] == _GZIP
        self._file: IO[bytes] = cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if packed else raw

    def is_at(self, path: Path) -> bool:
        """Whether this is the file at `path`."""
        return path.exists() and os.path.samestat(path.stat(), os.fstat(self._raw.fileno()))

    @property
    def position(self) -> int:
        return self._raw.tell() if self._measured else 0

    def lines(self) -> Iterator[Line]:
        """Every line, without a byte order mark. Raises `Unreadable` where the file breaks off."""
        number, whole = 0, True
        while True:
            content = self._read()
            if not content:
                return
            number += 1
            if number == 1:
                content = _without_mark(content)
            while len(content) >= MAX_LINE and not content.endswith(b"\n"):
                whole = False
                more = self._read()
                if not more or more.endswith(b"\n"):
                    break
            yield Line(number, content, whole)
            whole = True

    def _read(self) -> bytes:
        try:
            return self._file.readline(MAX_LINE)
        except (OSError, EOFError, zlib.error) as error:
            raise Unreadable(f"breaks off: {error}") from None


def format_of(name: str, asked: Format | None) -> Format:
    """The format asked for, else the one the name tells; raises `Unreadable`."""
    if asked is not None:
        return asked
    path = Path(name.removesuffix(".gz"))
    found = _ENDINGS.get(path.suffix.lower())
    if found is None:
        raise Unreadable("does not tell its format by its name: say --format csv or --format jsonl")
    return found


@contextmanager
def reading(name: str) -> Iterator[Source]:
    """A file to read; `-` is the standard input. Raises `Unreadable`."""
    if name == STANDARD:
        yield Source(cast("io.BufferedReader", sys.stdin.buffer))
        return
    try:
        raw = Path(name).open("rb")  # noqa: SIM115 (closed below; errors inside the block are not about opening)
        source = Source(raw)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None
    with raw:
        yield source


@contextmanager
def writing(name: str) -> Iterator[BinaryIO]:
    """A file to write, there under its name once it is complete; `-` is the standard output."""
    if name == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name)
    if path.exists() and not path.is_file():  # a pipe or a device
        with path.open("wb") as raw:
            yield raw
        return
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as raw:
            if name.endswith(".gz"):
                # Without name and time, the same records pack to the same bytes.
                with gzip.GzipFile("", "wb", _PACK_LEVEL, raw, mtime=0) as packed:
                    yield cast("BinaryIO", packed)
            else:
                yield raw
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink()


def _without_mark(content: bytes) -> bytes:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Unreadable("is written in UTF-16: save it as UTF-8")
    return content.removeprefix(b"\xef\xbb\xbf")
