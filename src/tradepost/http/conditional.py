"""Conditional requests (RFC 9110, 8.8 and 13): comparison of entity tags, in the order of precedence."""

import re

from tradepost.problems import Malformed, PreconditionFailed

_TAG = re.compile(rb'[\s,]*(W/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*(?:,[\s,]*|$)')
_CODING = re.compile(rb"(?:[-;+]|--)gzip$")


def not_modified(headers: dict[bytes, bytes], tag: bytes) -> bool:
    """Whether the response to a GET is 304.

    Raises `PreconditionFailed` if the condition of If-Match is false, `Malformed` if a field is not valid.
    """
    if b"if-match" in headers:
        check_match(headers[b"if-match"], tag)
    if b"if-none-match" not in headers:
        return False
    return _names(headers[b"if-none-match"], tag)


def check_write(headers: dict[bytes, bytes], tag: bytes) -> None:
    """Checks the conditions of a PUT, PATCH or DELETE against the current tag of the item.

    Raises `PreconditionFailed` if one is false, `Malformed` if a field is not valid.
    """
    if b"if-match" in headers:
        check_match(headers[b"if-match"], tag)
    if b"if-none-match" in headers and _names(headers[b"if-none-match"], tag):
        message = "If-None-Match names the present state of the item"
        raise PreconditionFailed(message, etag=tag.decode())


def check_match(field: bytes, tag: bytes) -> None:
    """If-Match: strong comparison, so a weak tag never matches. Tags of all representations of a state match.

    Raises `PreconditionFailed` and `Malformed` as `check_write` does.
    """
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
    """The part of a tag that names the item's version, without suffixes of proxies and representations."""
    return _CODING.sub(b"", value).partition(b".")[0]


def _tags(field: bytes) -> list[tuple[bool, bytes]]:
    tags = []
    position = 0
    while position < len(field):
        match = _TAG.match(field, position)
        if match is None:
            message = 'If-Match and If-None-Match take *, or entity tags such as "7.a1b2"'
            raise Malformed(message)
        tags.append((match[1] is not None, match[2]))
        position = match.end()
    return tags
