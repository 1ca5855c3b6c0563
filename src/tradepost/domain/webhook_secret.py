"""A webhook secret: what the deliveries to an endpoint are signed with. Its value is kept sealed."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from tradepost.domain.record import FILTERABLE, RANGED, READ_ONLY, SORTABLE, BelongsTo, Record
from tradepost.domain.webhook_endpoint import WebhookEndpoint


class WebhookSecret(Record, kw_only=True):
    """What the deliveries to an endpoint are signed with."""

    kind: ClassVar[str] = "webhook_secret"
    plural: ClassVar[str] = "webhook_secrets"

    endpoint_id: Annotated[
        str,
        Meta(description="The endpoint whose deliveries it signs."),
        BelongsTo(WebhookEndpoint, reverse="secrets"),
    ]
    status: Annotated[
        Literal["CURRENT", "RETIRING", "RETIRED"],
        Meta(
            description="CURRENT signs; RETIRING still signs for a receiver that refuses the current one; "
            "RETIRED is not used any more."
        ),
        READ_ONLY,
    ] = "CURRENT"
    created_at: Annotated[
        str, Meta(description="When it was created."), READ_ONLY, FILTERABLE, RANGED, SORTABLE
    ]
    retired_at: Annotated[str | None, Meta(description="When it was retired."), READ_ONLY] = None
