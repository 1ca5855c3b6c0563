"""A webhook secret: the key that signs the deliveries to an endpoint. Its value is stored encrypted."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from tradepost.domain.record import FILTERABLE, RANGED, READ_ONLY, SORTABLE, BelongsTo, Record
from tradepost.domain.webhook_endpoint import WebhookEndpoint


class WebhookSecret(Record, kw_only=True):
    """The key that signs the deliveries to an endpoint."""

    kind: ClassVar[str] = "webhook_secret"
    plural: ClassVar[str] = "webhook_secrets"

    endpoint_id: Annotated[
        str,
        Meta(description="The endpoint whose deliveries this secret signs."),
        BelongsTo(WebhookEndpoint, reverse="secrets"),
    ]
    status: Annotated[
        Literal["CURRENT", "RETIRING", "RETIRED"],
        Meta(
            description="CURRENT signs deliveries; RETIRING signs them again if the receiver rejects the "
            "current secret; RETIRED is no longer used."
        ),
        READ_ONLY,
    ] = "CURRENT"
    created_at: Annotated[
        str, Meta(description="When the secret was created."), READ_ONLY, FILTERABLE, RANGED, SORTABLE
    ]
    retired_at: Annotated[
        str | None, Meta(description="When the secret was retired; null if it was not."), READ_ONLY
    ] = None
