"""Deliveries as a receiver gets them: rendered and signed as the service does, and sent over a socket."""

import http.client
import time
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

from tradepost.clock import instant
from tradepost.webhooks.envelope import EventRow, render
from tradepost.webhooks.signature import signed

SECRET = "whsec_dGhlIHNlY3JldCBvZiBhbiBlbmRwb2ludCwgMzIgQi4="
OTHER = "whsec_YW5vdGhlciBzZWNyZXQsIG9mIG5vYm9keSBhdCBhbGw="

_SECONDS = 20


class Delivery(NamedTuple):
    """One request to a receiver."""

    body: bytes
    headers: dict[str, str]


def an_event(**members: Any) -> EventRow:
    """An event that nobody has seen before."""
    order = uuid4()
    event = EventRow(
        id=str(uuid4()),
        source="https://shop.example",
        type="dev.tradepost.order.placed",
        subject=f"orders/{order}",
        time="2026-11-20T08:15:30.123Z",
        dataschema="https://shop.example/event-types/dev.tradepost.order.placed",
        data=f'{{"entityType":"order","entityId":"{order}"}}',
        traceparent=None,
    )
    return event._replace(**members)


def delivery(event: EventRow, *, secret: str = SECRET, attempt: int = 0, age: int = 0) -> Delivery:
    """An attempt that was signed `age` seconds ago."""
    at = int(time.time()) - age
    body = render(event, instant(at * 1000), attempt)
    kind = {"Content-Type": "application/cloudevents+json"}
    return Delivery(body, kind | dict(signed(event.id, at, body, secret)))


def send(url: str, delivery: Delivery, method: str = "POST") -> tuple[int, bytes]:
    """Sends it; what it was answered with."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_SECONDS)
    try:
        connection.request(method, urlsplit(url).path or "/", delivery.body, delivery.headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
