"""A webhook redelivery: the events of a period, sent to an endpoint again."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from tradepost.domain.record import FILTERABLE, INSTANT, JSON, RANGED, READ_ONLY, SORTABLE, Record


class WebhookRedelivery(Record, kw_only=True):
    """The events of a period, sent to an endpoint again."""

    kind: ClassVar[str] = "webhook_redelivery"
    plural: ClassVar[str] = "webhook_redeliveries"

    endpoint_id: Annotated[str, Meta(description="The endpoint that receives the events."), FILTERABLE]
    from_: Annotated[str, Meta(description="Start of the period, inclusive, RFC 3339."), INSTANT]
    to: Annotated[
        str | None,
        Meta(description="End of the period, exclusive, RFC 3339; null or a future instant means now."),
        INSTANT,
    ] = None
    event_types: Annotated[
        Annotated[list[str], Meta(min_length=1, max_length=100)] | None,
        Meta(
            description="Event types, in the same form as for an endpoint; null means those of the endpoint."
        ),
        JSON,
    ] = None
    status: Annotated[
        Literal["DELIVERED", "ABANDONED"] | None,
        Meta(
            description="Only events whose delivery to the endpoint ended like this; null means all events."
        ),
    ] = None
    made: Annotated[int, Meta(description="Number of deliveries created so far."), READ_ONLY] = 0
    finished_at: Annotated[
        str | None, Meta(description="When all deliveries had been created; null until then."), READ_ONLY
    ] = None
    created_at: Annotated[
        str, Meta(description="When the redelivery was created."), READ_ONLY, FILTERABLE, RANGED, SORTABLE
    ]
