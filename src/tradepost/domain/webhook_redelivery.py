"""A webhook redelivery: the events of a stretch of time, sent to an endpoint once more."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from tradepost.domain.record import FILTERABLE, INSTANT, JSON, RANGED, READ_ONLY, SORTABLE, Record


class WebhookRedelivery(Record, kw_only=True):
    """The events of a stretch of time, sent to an endpoint once more."""

    kind: ClassVar[str] = "webhook_redelivery"
    plural: ClassVar[str] = "webhook_redeliveries"

    endpoint_id: Annotated[str, Meta(description="The endpoint they go to."), FILTERABLE]
    from_: Annotated[
        str, Meta(description="Events that happened at this instant or later, RFC 3339."), INSTANT
    ]
    to: Annotated[
        str | None,
        Meta(description="Events that happened before this instant; null, or later than now, is now."),
        INSTANT,
    ] = None
    event_types: Annotated[
        Annotated[list[str], Meta(min_length=1, max_length=100)] | None,
        Meta(description="Types of events, as an endpoint takes them; null is those of the endpoint."),
        JSON,
    ] = None
    status: Annotated[
        Literal["DELIVERED", "ABANDONED"] | None,
        Meta(description="Only events with a delivery to the endpoint that ended so; null is all events."),
    ] = None
    made: Annotated[int, Meta(description="Deliveries made of it so far."), READ_ONLY] = 0
    finished_at: Annotated[
        str | None, Meta(description="When all of its deliveries were made; null until then."), READ_ONLY
    ] = None
    created_at: Annotated[
        str, Meta(description="When it was created."), READ_ONLY, FILTERABLE, RANGED, SORTABLE
    ]
