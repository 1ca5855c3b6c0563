"""The body of a delivery: the CloudEvents JSON that GET /v1/events shows, and two attributes of the attempt."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from hypothesis import given
from hypothesis import strategies as st

from tests import shop
from tests.service import Service
from tests.webhooks.receiving import an_event
from tradepost.webhooks.envelope import EventRow, render

AT = "2026-11-20T08:15:31.000Z"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

WORDS = st.text(min_size=1)


@pytest.mark.parametrize("sent", [{}, {"traceparent": TRACE}], ids=["plain", "traced"])
def test_it_is_the_event_of_the_log_and_two_attributes(service: Service, sent: dict[str, str]) -> None:
    """A body has the bytes of GET /v1/events/{id}, members in the same order, then `signedat` and `attempt`."""
    user = service.made("/v1/users", shop.user_body(), **sent)
    (event,) = shop.events_of(service, f"users/{user['id']}")
    row = service.rows(f"SELECT {', '.join(EventRow._fields)} FROM events WHERE id = '{event['id']}'")[0]
    body = render(EventRow(*row), AT, 3)
    shown = service.get(f"/v1/events/{event['id']}").body
    assert body == shown[:-1] + f',"signedat":"{AT}","attempt":3}}'.encode()
    assert json.loads(body) == {**event, "signedat": AT, "attempt": 3}
    assert ("traceparent" in event) == bool(sent)


@given(WORDS, WORDS, WORDS, st.none() | WORDS, st.integers(0, 7))
def test_any_text_is_carried(
    source: str, subject: str, event_type: str, traceparent: str | None, attempt: int
) -> None:
    """Whatever an event's members say, the body is UTF-8 JSON that says the same; an absent traceparent is left out."""
    event = an_event(source=source, subject=subject, type=event_type, traceparent=traceparent)
    said = json.loads(render(event, AT, attempt).decode())
    assert said.pop("data") == json.loads(event.data)
    assert said.pop("traceparent", None) == traceparent
    assert said == {
        "id": event.id,
        "specversion": "1.0",
        "source": source,
        "type": event_type,
        "subject": subject,
        "time": event.time,
        "datacontenttype": "application/json",
        "dataschema": event.dataschema,
        "signedat": AT,
        "attempt": attempt,
    }


def test_data_is_carried_as_it_stands() -> None:
    """The JSON of `data` is not read and written again: what a receiver gets is what was kept."""
    data = '{"b": 1.0, "a": "\\u00e9", "b": 2}'
    assert f'"data":{data},'.encode() in render(an_event(data=data), AT, 0)


@pytest.mark.parametrize(
    "kind", ["application/cloudevents+json", "application/cloudevents+json; charset=utf-8"]
)
@pytest.mark.parametrize("traceparent", [None, TRACE])
def test_the_library_of_cloudevents_reads_it(kind: str, traceparent: str | None) -> None:
    """The CloudEvents SDK takes a delivery for a valid event in structured mode, extensions included."""
    event = an_event(traceparent=traceparent)
    headers = {"content-type": kind, "webhook-id": event.id}
    read = from_http_event(HTTPMessage(headers=headers, body=render(event, AT, 7)))
    expected: dict[str, Any] = event._asdict()
    assert read.get_data() == json.loads(expected.pop("data"))
    assert read.get_time() == datetime.fromisoformat(expected.pop("time")) > datetime(2026, 1, 1, tzinfo=UTC)
    assert {name: read.get_attributes().get(name) for name in expected} == expected
    assert (read.get_extension("signedat"), read.get_extension("attempt")) == (AT, 7)
