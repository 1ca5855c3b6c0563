"""Conditional requests (RFC 9110, 8.8 and 13): validators compared, in the order the standard sets."""

import re

from tradepost.problems import Malformed, PreconditionFailed

_TAG = re.compile(rb'[\s,]*(W/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*(?:,[\s,]*|$)')
_CODING = re.compile(rb"(?:[-;+]|--)gzip$")


def not_modified(headers: dict[bytes, bytes], tag: bytes) -> bool:
    """Whether a GET may be answered 304; raises `PreconditionFailed` if its If-Match does not hold."""
    if b"if-match" in headers:
        check_match(headers[b"if-match"], tag)
    if b"if-none-match" not in headers:
        return False
    return _names(headers[b"if-none-match"], tag)


def check_write(headers: dict[bytes, bytes], tag: bytes) -> None:
    """Raises `PreconditionFailed` unless the conditions of a PUT, PATCH or DELETE hold for the item."""
    if b"if-match" in headers:
        check_match(headers[b"if-match"], tag)
    if b"if-none-match" in headers and _names(headers[b"if-none-match"], tag):
        message = "If-None-Match names the present state of the item"
        raise PreconditionFailed(message, etag=tag.decode())


def check_match(field: bytes, tag: bytes) -> None:
    """If-Match: strong comparison, so a weak tag never matches; an item is one under any representation."""
    if field.strip() == b"*":
        return
    state = _state(tag.strip(b'"'))
    for weak, value in _tags(field):
        if not weak and _state(value) == state:
            return
    message = "The item has changed since it was read: If-Match does not name its present state"
    raise PreconditionFailed(message, etag=tag.decode())


def _names(field: bytes, tag: bytes) -> bool:
    """If-None-Match: weak comparison."""
    if field.strip() == b"*":
        return True
    plain = tag.strip(b'"')
    return any(_CODING.sub(b"", value) == plain for _, value in _tags(field))


def _state(value: bytes) -> bytes:
    """What of a tag names the item's state: its version, whatever proxy or serializer it came through."""
    return _CODING.sub(b"", value).partition(b".")[0]


def _tags(field: bytes) -> list[tuple[bool, bytes]]:
    found = []
    position = 0
    while position < len(field):
        match = _TAG.match(field, position)
        if match is None:
            message = 'If-Match and If-None-Match take *, or entity tags such as "7.a1b2"'
            raise Malformed(message)
        found.append((match[1] is not None, match[2]))
        position = match.end()
    return found
