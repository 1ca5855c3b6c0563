"""An API key: a name, what it may do, and for whom. The secret itself is never kept, only its hash."""

from typing import Annotated, ClassVar

from msgspec import Meta

from tradepost.domain.record import FILTERABLE, JSON, RANGED, READ_ONLY, SORTABLE, BelongsTo, Record
from tradepost.domain.scope import Scope
from tradepost.domain.text import Name
from tradepost.domain.user import User


class ApiKey(Record, kw_only=True):
    """What a caller shows to be let in."""

    kind: ClassVar[str] = "api_key"
    plural: ClassVar[str] = "api_keys"

    name: Annotated[Name, Meta(description="What the key is for.")]
    scopes: Annotated[list[Scope], Meta(description="What it may do.", min_length=1, max_length=100), JSON]
    user_id: Annotated[
        str | None,
        Meta(description="Acts for this user alone; null acts for the whole service."),
        FILTERABLE,
        BelongsTo(User, reverse="api_keys"),
    ] = None
    expires_at: Annotated[str | None, Meta(description="When it stops working; null never does.")] = None
    prefix: Annotated[str, Meta(description="The visible part of the key."), READ_ONLY, FILTERABLE]
    last_used_at: Annotated[str | None, Meta(description="When it was last used."), READ_ONLY] = None
    created_at: Annotated[
        str, Meta(description="When it was created."), READ_ONLY, FILTERABLE, RANGED, SORTABLE
    ]
    revoked_at: Annotated[str | None, Meta(description="When it was revoked."), READ_ONLY] = None
