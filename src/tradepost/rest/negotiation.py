"""Content negotiation (RFC 9110, 12): `Accept` and `Content-Type`; and `Prefer` (RFC 7240)."""

import re
from functools import lru_cache
from typing import NamedTuple

from tradepost.http.accept import media_ranges
from tradepost.problems import NotAcceptable, UnsupportedMediaType

MERGE_PATCH = b"application/merge-patch+json"
_JSON = b"application/json"
_VENDOR = re.compile(rb"application/vnd\.tradepost\.v([0-9]{1,9})\+json")
_MINIMAL = re.compile(rb'(?:^|[,;])\s*return\s*=\s*"?minimal"?\s*(?:$|[,;])')
_OFFERED = {b"*/*": 0, b"application/*": 1, _JSON: 2, b"application/problem+json": 2}


class Accepted(NamedTuple):
    """The media type of the response, and the version that it names, if any."""

    content_type: bytes
    version: int | None


@lru_cache(512)
def accepted(field: bytes, served: frozenset[int]) -> Accepted:
    """The best type for an Accept field, among the versions `served`. Raises `NotAcceptable` if none fits."""
    ranked: list[tuple[float, int, Accepted]] = []
    refused: set[Accepted] = set()
    for kind, quality in media_ranges(field):
        offer = _offer(kind, served)
        if offer is None:
            continue
        ranked.append((quality, *offer))
        if quality == 0 and b"*" not in kind:
            refused.add(offer[1])
    fit = [each for each in ranked if each[0] > 0 and each[2] not in refused]
    if not fit:
        message = "The service answers with application/json, or a version of it that is served here"
        raise NotAcceptable(message)
    return max(fit, key=lambda each: each[:2])[2]


def _offer(kind: bytes, served: frozenset[int]) -> tuple[int, Accepted] | None:
    vendor = _VENDOR.fullmatch(kind)
    if vendor:
        number = int(vendor[1])
        return (3, Accepted(kind, number)) if number in served else None
    if kind in _OFFERED:
        return _OFFERED[kind], Accepted(_JSON, None)
    return None


def wants_minimal(headers: dict[bytes, bytes]) -> bool:
    """Whether the client prefers a response without a body to its change (RFC 7240, 4.2)."""
    return b"prefer" in headers and _MINIMAL.search(headers[b"prefer"].lower()) is not None


def check_body_type(headers: dict[bytes, bytes], version: int, *, patch: bool) -> None:
    """Raises `UnsupportedMediaType` unless the body is JSON or, for a `patch`, a merge patch (RFC 7396)."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    vendor = _VENDOR.fullmatch(kind)
    if kind == _JSON or (patch and kind == MERGE_PATCH) or (vendor and int(vendor[1]) == version):
        return
    taken = f"{MERGE_PATCH.decode()}, {_JSON.decode()}" if patch else _JSON.decode()
    message = f"Content-Type must be {taken.replace(', ', ' or ')}"
    if patch:
        raise UnsupportedMediaType(message, accept_patch=taken)
    raise UnsupportedMediaType(message, accept=taken)
