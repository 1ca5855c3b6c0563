"""A webhook endpoint: the URL that receives events, the types it subscribes to, and their format."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from tradepost.domain.record import FILTERABLE, JSON, READ_ONLY, Dated

EVERY_TYPE = "*"


class WebhookEndpoint(Dated, kw_only=True):
    """A URL that receives events as signed requests."""

    kind: ClassVar[str] = "webhook_endpoint"
    plural: ClassVar[str] = "webhook_endpoints"
    hides_deleted: ClassVar[bool] = True

    url: Annotated[
        str, Meta(description="An https URL with a public address.", min_length=1, max_length=2048)
    ]
    description: Annotated[
        Annotated[str, Meta(max_length=500)] | None, Meta(description="What the endpoint is for.")
    ] = None
    event_types: Annotated[
        list[str],
        Meta(
            description="Event types: `order.placed`, `order.*` for all events of orders, or `*` for all.",
            min_length=1,
            max_length=100,
        ),
        JSON,
    ] = msgspec.field(default_factory=lambda: [EVERY_TYPE])
    content_type: Annotated[
        Literal["application/cloudevents+json", "application/json"],
        Meta(description="The Content-Type of deliveries."),
    ] = "application/cloudevents+json"
    status: Annotated[
        Literal["ENABLED", "DISABLED"],
        Meta(
            description="A DISABLED endpoint receives nothing; pending deliveries wait until it is enabled."
        ),
        FILTERABLE,
    ] = "ENABLED"
    disabled_reason: Annotated[
        str | None, Meta(description="Why the endpoint was disabled; null if it was not."), READ_ONLY
    ] = None
