"""An event: a change that happened, in the CloudEvents 1.0.2 envelope. It carries identifiers only."""

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from tradepost.domain.record import EVENT_TYPE, FILTERABLE, JSON, OMITTED, RANGED, READ_ONLY, Record


class Event(Record, kw_only=True):
    """A change that happened, in the CloudEvents envelope."""

    kind: ClassVar[str] = "event"
    plural: ClassVar[str] = "events"
    is_log: ClassVar[bool] = True

    specversion: Annotated[str, Meta(description="Always 1.0."), READ_ONLY] = "1.0"
    source: Annotated[str, Meta(description="The service that emitted it."), READ_ONLY]
    type: Annotated[
        str, Meta(description="What happened, with a reverse-DNS prefix."), READ_ONLY, FILTERABLE, EVENT_TYPE
    ]
    subject: Annotated[
        str, Meta(description="The entity that changed, such as orders/<id>."), READ_ONLY, FILTERABLE
    ]
    time: Annotated[str, Meta(description="When it happened."), READ_ONLY, FILTERABLE, RANGED]
    datacontenttype: Annotated[str, Meta(description="Always application/json."), READ_ONLY] = (
        "application/json"
    )
    dataschema: Annotated[str, Meta(description="URL of the schema of `data`."), READ_ONLY]
    data: Annotated[msgspec.Raw, Meta(description="The entity, the change and its time."), READ_ONLY, JSON]
    traceparent: Annotated[
        str | None, Meta(description="W3C trace context of the request that caused it."), READ_ONLY, OMITTED
    ] = None
