"""A webhook endpoint: where events are sent, which of them, and in what form."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from tradepost.domain.record import FILTERABLE, JSON, READ_ONLY, Dated

EVERY_TYPE = "*"


class WebhookEndpoint(Dated, kw_only=True):
    """Where events are sent to, as signed requests."""

    kind: ClassVar[str] = "webhook_endpoint"
    plural: ClassVar[str] = "webhook_endpoints"
    hides_deleted: ClassVar[bool] = True

    url: Annotated[
        str, Meta(description="An https URL with a public address.", min_length=1, max_length=2048)
    ]
    description: Annotated[
        Annotated[str, Meta(max_length=500)] | None, Meta(description="What it is for.")
    ] = None
    event_types: Annotated[
        list[str],
        Meta(
            description="Types of events: `order.placed`, `order.*` for all of orders, or `*` for every one.",
            min_length=1,
            max_length=100,
        ),
        JSON,
    ] = msgspec.field(default_factory=lambda: [EVERY_TYPE])
    content_type: Annotated[
        Literal["application/cloudevents+json", "application/json"],
        Meta(description="What deliveries give as their Content-Type."),
    ] = "application/cloudevents+json"
    status: Annotated[
        Literal["ENABLED", "DISABLED"],
        Meta(description="DISABLED gets nothing; what is pending waits until it is enabled again."),
        FILTERABLE,
    ] = "ENABLED"
    disabled_reason: Annotated[str | None, Meta(description="Why it was disabled."), READ_ONLY] = None
