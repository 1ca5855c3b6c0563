"""A webhook delivery: the sending of one event to one endpoint, with every attempt made so far."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from tradepost.domain.record import EVENT_TYPE, FILTERABLE, JSON, RANGED, READ_ONLY, SORTABLE, Record

SLOTS = 4  # deliveries to one endpoint that all workers together may have in flight
RETRY_SLOTS = 2  # how many of those may be retries and redeliveries


class Attempt(msgspec.Struct, rename="camel", frozen=True):
    """One request of a delivery: the first of an attempt, or its repetition with the retiring secret."""

    number: Annotated[int, Meta(description="0 for the first attempt; higher numbers are retries.", ge=0)]
    attempted_at: Annotated[
        str,
        Meta(description="When the request was sent, RFC 3339.", extra_json_schema={"format": "date-time"}),
    ]
    duration_ms: Annotated[int, Meta(description="How long the request took, in milliseconds.", ge=0)]
    response_status: Annotated[
        int | None, Meta(description="HTTP status of the response; null if none arrived in time.")
    ]
    error: Annotated[str | None, Meta(description="Why there was no response; null if there was one.")]
    response_body: Annotated[
        str | None, Meta(description="The first 1,024 bytes of the response body, as text.")
    ]
    secret_id: Annotated[
        str, Meta(description="The secret that signed the request.", extra_json_schema={"format": "uuid"})
    ]


class WebhookDelivery(Record, kw_only=True):
    """The sending of one event to one endpoint."""

    kind: ClassVar[str] = "webhook_delivery"
    plural: ClassVar[str] = "webhook_deliveries"

    endpoint_id: Annotated[str, Meta(description="The endpoint that receives the event."), FILTERABLE]
    event_id: Annotated[str | None, Meta(description="The event; null for a ping."), FILTERABLE] = None
    event_type: Annotated[str, Meta(description="The type of the event."), READ_ONLY, FILTERABLE, EVENT_TYPE]
    status: Annotated[
        Literal["PENDING", "DELIVERED", "ABANDONED"],
        Meta(description="PENDING until a request succeeds; ABANDONED after the last retry has failed."),
        READ_ONLY,
        FILTERABLE,
    ] = "PENDING"
    attempts: Annotated[list[Attempt], Meta(description="The requests made so far."), READ_ONLY, JSON]
    next_attempt_at: Annotated[
        str | None,
        Meta(description="When the next attempt is due; null once the delivery has ended."),
        READ_ONLY,
    ] = None
    redelivery_id: Annotated[
        str | None,
        Meta(description="The redelivery that created this delivery; null if none did."),
        READ_ONLY,
        FILTERABLE,
    ] = None
    created_at: Annotated[
        str, Meta(description="When the delivery was created."), READ_ONLY, FILTERABLE, RANGED, SORTABLE
    ]
    updated_at: Annotated[
        str, Meta(description="When the delivery last changed."), READ_ONLY, FILTERABLE, RANGED
    ]
