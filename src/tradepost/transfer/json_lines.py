"""JSON Lines: one JSON object per line (jsonlines.org)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

import msgspec

from tradepost.transfer.file_entity import FileEntity
from tradepost.transfer.stream import FileLine, Source

# A rejected line that is not a JSON object is wrapped in one, and unwrapped when it is imported again.
_BROKEN = b'{"text":'
_EXCERPT_BYTES = 1000  # of a line that is too long

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


class _Broken(msgspec.Struct):
    text: str


class JsonLines:
    """A JSON Lines file."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __iter__(self) -> Iterator[FileEntity]:
        for line in self._source.lines():
            content = line.content.strip()
            if content:
                yield _entity(line, content)

    def rejects_writer(self, file: BinaryIO) -> "JsonRejects":
        return JsonRejects(file)


class JsonRejects:
    """Writes rejected lines unchanged, with the reason as an additional member."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, entity: FileEntity, reason: str) -> None:
        content: bytes = entity.original
        why = msgspec.Raw(_encode(reason))
        try:
            rejected: Mapping[str, Any] = _members(content) | {"reason": why}
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            rejected = {"text": content.decode(errors="replace"), "reason": why}
        self._file.write(_encode(rejected) + b"\n")


class JsonWriter:
    """Writes objects, one per line."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, entities: Iterable[Mapping[str, Any]]) -> None:
        self._file.write(b"".join([_encode(each) + b"\n" for each in entities]))


def _entity(line: FileLine, content: bytes) -> FileEntity:
    if not line.whole:
        fault = "the line is longer than 1 MiB; only its beginning was saved"
        return FileEntity(line.number, b"", content[:_EXCERPT_BYTES], fault)
    if content.startswith(_BROKEN):
        content = _unwrapped(content)
    return FileEntity(line.number, content, content)


def _unwrapped(content: bytes) -> bytes:
    try:
        return msgspec.json.decode(content, type=_Broken).text.encode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return content
