"""What a client accepts and prefers, and what its body is (RFC 9110, 12; RFC 7240)."""

import re
from functools import lru_cache
from typing import NamedTuple

from tradepost.problems import NotAcceptable, UnsupportedMediaType

MERGE_PATCH = b"application/merge-patch+json"
_JSON = b"application/json"
_VENDOR = re.compile(rb"application/vnd\.tradepost\.v(\d+)\+json")
_MINIMAL = re.compile(rb'(?:^|[,;])\s*return\s*=\s*"?minimal"?\s*(?:$|[,;])')
_OFFERED = {b"*/*": 0, b"application/*": 1, _JSON: 2, b"application/problem+json": 2}


class Accepted(NamedTuple):
    """The media type to answer with, and the version it names, if any."""

    content_type: bytes
    version: int | None


@lru_cache(512)
def accepted(field: bytes) -> Accepted:
    """What to answer to an Accept field; raises `NotAcceptable` if nothing served is in it."""
    best: tuple[float, int, Accepted] | None = None
    for part in field.split(b","):
        kind, *parameters = (piece.strip().lower() for piece in part.split(b";"))
        quality = _quality(parameters)
        offer = _offer(kind)
        if offer and quality > 0 and (best is None or (quality, offer[0]) > best[:2]):
            best = (quality, *offer)
    if best is None:
        message = "The service answers with application/json; Accept rules it out"
        raise NotAcceptable(message)
    return best[2]


def _offer(kind: bytes) -> tuple[int, Accepted] | None:
    vendor = _VENDOR.fullmatch(kind)
    if vendor:
        return 3, Accepted(kind, int(vendor[1]))
    if kind in _OFFERED:
        return _OFFERED[kind], Accepted(_JSON, None)
    return None


def _quality(parameters: list[bytes]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition(b"=")
        if name.strip() == b"q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def wants_minimal(headers: dict[bytes, bytes]) -> bool:
    """Whether the client prefers no body in the answer to its change."""
    return b"prefer" in headers and _MINIMAL.search(headers[b"prefer"].lower()) is not None


def check_body_type(headers: dict[bytes, bytes], *, patch: bool) -> None:
    """Raises `UnsupportedMediaType` unless the body is JSON, or a merge patch where one is taken."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind == _JSON or (patch and kind == MERGE_PATCH) or _VENDOR.fullmatch(kind):
        return
    taken = f"{MERGE_PATCH.decode()}, {_JSON.decode()}" if patch else _JSON.decode()
    message = f"Content-Type has to be {taken.replace(', ', ' or ')}"
    if patch:
        raise UnsupportedMediaType(message, accept_patch=taken)
    raise UnsupportedMediaType(message, accept=taken)
