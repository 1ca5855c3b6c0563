"""A webhook delivery: one event on its way to one endpoint, with every attempt that was made."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from tradepost.domain.record import EVENT_TYPE, FILTERABLE, JSON, RANGED, READ_ONLY, SORTABLE, Record

SLOTS = 4  # deliveries of an endpoint that are in flight at once, over all workers
RETRY_SLOTS = 2  # of them for retries and redeliveries


class Attempt(msgspec.Struct, rename="camel", frozen=True):
    """One request of a delivery: the first of an attempt, or its repetition under the retiring secret."""

    number: Annotated[int, Meta(description="0 is the first attempt; the others are retries.", ge=0)]
    attempted_at: Annotated[
        str, Meta(description="When it began, RFC 3339.", extra_json_schema={"format": "date-time"})
    ]
    duration_ms: Annotated[int, Meta(description="What it took, in milliseconds.", ge=0)]
    response_status: Annotated[
        int | None, Meta(description="The status of the answer; null if none came in time.")
    ]
    error: Annotated[str | None, Meta(description="Why no answer came; null if one did.")]
    response_body: Annotated[str | None, Meta(description="The first 1,024 bytes of the answer, as text.")]
    secret_id: Annotated[
        str, Meta(description="The secret it was signed with.", extra_json_schema={"format": "uuid"})
    ]


class WebhookDelivery(Record, kw_only=True):
    """One event on its way to one endpoint."""

    kind: ClassVar[str] = "webhook_delivery"
    plural: ClassVar[str] = "webhook_deliveries"

    endpoint_id: Annotated[str, Meta(description="The endpoint it goes to."), FILTERABLE]
    event_id: Annotated[str | None, Meta(description="The event; null is a ping."), FILTERABLE] = None
    event_type: Annotated[str, Meta(description="The type of the event."), READ_ONLY, FILTERABLE, EVENT_TYPE]
    status: Annotated[
        Literal["PENDING", "DELIVERED", "ABANDONED"],
        Meta(description="ABANDONED once the last retry has failed."),
        READ_ONLY,
        FILTERABLE,
    ] = "PENDING"
    attempts: Annotated[list[Attempt], Meta(description="The requests made so far."), READ_ONLY, JSON]
    next_attempt_at: Annotated[
        str | None, Meta(description="When it is due; null once it is over."), READ_ONLY
    ] = None
    redelivery_id: Annotated[
        str | None, Meta(description="The redelivery that made it, if one did."), READ_ONLY, FILTERABLE
    ] = None
    created_at: Annotated[
        str, Meta(description="When it was created."), READ_ONLY, FILTERABLE, RANGED, SORTABLE
    ]
    updated_at: Annotated[str, Meta(description="When it last changed."), READ_ONLY, FILTERABLE, RANGED]
