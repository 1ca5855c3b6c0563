"""The Accept field (RFC 9110, 12.5.1)."""

from typing import NamedTuple


class MediaRange(NamedTuple):
    """A media type or a wildcard in lower case, and its quality from 0 (not acceptable) to 1."""

    name: bytes
    quality: float


def media_ranges(accept: bytes) -> list[MediaRange]:
    """The media ranges of an Accept field, in its order."""
    return [_media_range(part) for part in accept.lower().split(b",")]


def preference(media_type: bytes, ranges: list[MediaRange]) -> tuple[float, int]:
    """The quality and the specificity of the most specific range that includes a media type.

    The specificity is 2 for the type itself, 1 for `type/*` and 0 for `*/*`. The result is (0.0, -1) if no
    range includes the type.
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
    """The quality value (RFC 9110, 12.4.2): 1 by default, 0 if it is not a number."""
    for parameter in parameters:
        name, _, value = parameter.partition(b"=")
        if name.strip() == b"q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
