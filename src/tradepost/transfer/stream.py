"""Files or standard streams, plain or gzipped, read in lines of bounded length."""

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
MAX_LINE = 1024 * 1024  # bytes, as the largest body of a request
_ENDINGS: dict[str, Format] = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_GZIP = b"\x1f\x8b"
_GZIP_LEVEL = 6


class Unreadable(Exception):
    """A file that cannot be read; the message says why, to be printed after its name."""


class FileLine(NamedTuple):
    """A line with its number; `whole` unless it is longer than `MAX_LINE`."""

    number: int
    content: bytes
    whole: bool


class Source:
    """A file being read. `size` and `position` are bytes on the disk; 0 for streams."""

    def __init__(self, raw: io.BufferedReader) -> None:
        self._raw = raw
        self._measured = raw.seekable()
        self.size = os.fstat(raw.fileno()).st_size if self._measured else 0
        zipped = raw.peek(2)[:2] == _GZIP
        self._file: IO[bytes] = cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if zipped else raw

    def is_at(self, path: Path) -> bool:
        """Whether this is the file at `path`."""
        return path.exists() and os.path.samestat(path.stat(), os.fstat(self._raw.fileno()))

    @property
    def position(self) -> int:
        return self._raw.tell() if self._measured else 0

    def lines(self) -> Iterator[FileLine]:
        """Every line, without a byte order mark. Raises `Unreadable` where the file is damaged."""
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
            yield FileLine(number, content, whole)
            whole = True

    def _read(self) -> bytes:
        try:
            return self._file.readline(MAX_LINE)
        except (OSError, EOFError, zlib.error) as error:
            raise Unreadable(f"the file is truncated or damaged: {error}") from None


def format_of(name: str, option: Format | None) -> Format:
    """The format of the option, or otherwise of the file name; raises `Unreadable` if neither tells."""
    if option is not None:
        return option
    path = Path(name.removesuffix(".gz"))
    form = _ENDINGS.get(path.suffix.lower())
    if form is None:
        raise Unreadable("the name does not tell the format: add --format csv or --format jsonl")
    return form


@contextmanager
def reading(name: str) -> Iterator[Source]:
    """Opens a file to read; `-` is standard input. Raises `Unreadable` if it cannot be opened."""
    if name == STANDARD:
        yield Source(cast("io.BufferedReader", sys.stdin.buffer))
        return
    try:
        raw = Path(name).open("rb")  # noqa: SIM115 (closed below; errors in the block are not errors of opening)
        source = Source(raw)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None
    with raw:
        yield source


@contextmanager
def writing(name: str) -> Iterator[BinaryIO]:
    """Opens a file to write, which gets its name once it is complete; `-` is standard output.

    Raises `OSError` if it cannot be written.
    """
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
                # Without a name and a time, the same records give the same bytes.
                with gzip.GzipFile("", "wb", _GZIP_LEVEL, raw, mtime=0) as zipped:
                    yield cast("BinaryIO", zipped)
            else:
                yield raw
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink()


def _without_mark(content: bytes) -> bytes:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Unreadable("the encoding is UTF-16: save the file as UTF-8")
    return content.removeprefix(b"\xef\xbb\xbf")
