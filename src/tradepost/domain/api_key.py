"""An API key: its name, its scopes and its user. Only the hash of the secret is stored."""

from typing import Annotated, ClassVar

from msgspec import Meta

from tradepost.domain.record import FILTERABLE, JSON, RANGED, READ_ONLY, SORTABLE, BelongsTo, Record
from tradepost.domain.scope import Scope
from tradepost.domain.text import Name
from tradepost.domain.user import User


class ApiKey(Record, kw_only=True):
    """The credential that a caller sends with each request."""

    kind: ClassVar[str] = "api_key"
    plural: ClassVar[str] = "api_keys"

    name: Annotated[Name, Meta(description="What the key is for.")]
    scopes: Annotated[
        list[Scope], Meta(description="What the key may do.", min_length=1, max_length=100), JSON
    ]
    user_id: Annotated[
        str | None,
        Meta(description="The only user the key acts for; null if it acts for all users."),
        FILTERABLE,
        BelongsTo(User, reverse="api_keys"),
    ] = None
    expires_at: Annotated[str | None, Meta(description="When the key expires; null if it never does.")] = None
    prefix: Annotated[str, Meta(description="The public part of the key."), READ_ONLY, FILTERABLE]
    last_used_at: Annotated[str | None, Meta(description="When the key was last used."), READ_ONLY] = None
    created_at: Annotated[
        str, Meta(description="When the key was created."), READ_ONLY, FILTERABLE, RANGED, SORTABLE
    ]
    revoked_at: Annotated[
        str | None, Meta(description="When the key was revoked; null if it was not."), READ_ONLY
    ] = None
