"""The body of a delivery: the event as `GET /v1/events` shows it, and when and how often it was sent.

`signedat` and `attempt` are extension attributes (CloudEvents 1.0.2, "Extension Context Attributes"). They
differ from attempt to attempt, so each attempt renders and signs its own body; all else stays the same.
"""

from typing import NamedTuple

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Encoder

_encode = Encoder().encode


class EventRow(NamedTuple):
    """An event as its row in the log holds it; `data` is JSON text, `time` RFC 3339."""

    id: str
    source: str
    type: str
    subject: str
    time: str
    dataschema: str
    data: str
    traceparent: str | None


class _Envelope(Struct):
    """The members of the JSON, in its order."""

    id: str
    specversion: str
    source: str
    type: str
    subject: str
    time: str
    datacontenttype: str
    dataschema: str
    data: Raw
    traceparent: str | UnsetType
    signedat: str
    attempt: int


def render(event: EventRow, signed_at: str, attempt: int) -> bytes:
    """The JSON of an attempt (the first is 0); `signed_at` is RFC 3339 in UTC, with milliseconds and `Z`."""
    return _encode(
        _Envelope(
            event.id,
            "1.0",
            event.source,
            event.type,
            event.subject,
            event.time,
            "application/json",
            event.dataschema,
            Raw(event.data),
            UNSET if event.traceparent is None else event.traceparent,
            signed_at,
            attempt,
        )
    )
