"""The Accept field (RFC 9110, 12.5.1)."""

from typing import NamedTuple


class MediaRange(NamedTuple):
    """A media type or a wildcard in lower case, and how much the client wants it, from 0 (never) to 1."""

    name: bytes
    quality: float


def media_ranges(accept: bytes) -> list[MediaRange]:
    """The media ranges of an Accept field in the order of the field."""
    return [_media_range(part) for part in accept.lower().split(b",")]


def preference(media_type: bytes, ranges: list[MediaRange]) -> tuple[float, int]:
    """The quality of the most specific range that includes a media type, and how specific that range is.

    Specificity is 2 for the type itself, 1 for `type/*` and 0 for `*/*`; without a range it is (0.0, -1).
    """
    wildcards = (b"*/*", media_type.partition(b"/")[0] + b"/*", media_type)
    for specificity in (2, 1, 0):
        for name, quality in ranges:
            if name == wildcards[specificity]:
                return quality, specificity
    return 0.0, -1


def _media_range(part: bytes) -> MediaRange:
    name, *parameters = part.split(b";")
    return MediaRange(name.strip(), _quality(parameters))


def _quality(parameters: list[bytes]) -> float:
    """The quality value (RFC 9110, 12.4.2): 1 by default, and 0 if it is no number."""
    for parameter in parameters:
        name, _, value = parameter.partition(b"=")
        if name.strip() == b"q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
