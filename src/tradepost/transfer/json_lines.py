"""JSON Lines: one JSON object a line (jsonlines.org)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

import msgspec

from tradepost.transfer.given import Given
from tradepost.transfer.stream import Line, Source

# A rejected line that is no JSON object is kept inside one, and taken out again when it comes back.
_BROKEN = b'{"text":'
_SHOWN = 1000  # characters kept of a line that is longer than lines may be

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


class _Broken(msgspec.Struct):
    text: str


class JsonLines:
    """A file of JSON objects."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __iter__(self) -> Iterator[Given]:
        for line in self._source.lines():
            content = line.content.strip()
            if content:
                yield _given(line, content)

    def aside(self, file: BinaryIO) -> "JsonAside":
        return JsonAside(file)


class JsonAside:
    """Rejected lines, as they stood but for the reason."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def keep(self, given: Given, reason: str) -> None:
        content: bytes = given.kept
        why = msgspec.Raw(_encode(reason))
        try:
            kept: Mapping[str, Any] = _members(content) | {"reason": why}
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            kept = {"text": content.decode(errors="replace"), "reason": why}
        self._file.write(_encode(kept) + b"\n")


class JsonWriter:
    """Objects, one a line."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, entities: Iterable[Mapping[str, Any]]) -> None:
        self._file.write(b"".join([_encode(each) + b"\n" for each in entities]))


def _given(line: Line, content: bytes) -> Given:
    if not line.whole:
        return Given(line.number, b"", content[:_SHOWN], "is longer than 1 MiB; only its beginning is kept")
    if content.startswith(_BROKEN):
        content = _mended(content)
    return Given(line.number, content, content)


def _mended(content: bytes) -> bytes:
    try:
        return msgspec.json.decode(content, type=_Broken).text.encode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return content
