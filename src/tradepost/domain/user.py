"""A user: someone who can place orders."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from tradepost.domain.email import check_email
from tradepost.domain.record import FILTERABLE, SORTABLE, UNIQUE_FOLDED, Checked, Dated
from tradepost.domain.text import EmailAddress, Name


class User(Dated, kw_only=True):
    """Someone who can place orders."""

    kind: ClassVar[str] = "user"
    plural: ClassVar[str] = "users"
    hides_deleted: ClassVar[bool] = True
    is_owner: ClassVar[bool] = True

    name: Annotated[Name, Meta(description="What to call them."), SORTABLE, FILTERABLE]
    email: Annotated[
        EmailAddress,
        Meta(description="Unique, regardless of case."),
        UNIQUE_FOLDED,
        SORTABLE,
        FILTERABLE,
        Checked(check_email),
    ]
    status: Annotated[
        Literal["ACTIVE", "DEACTIVATED"],
        Meta(description="A deactivated user cannot place orders."),
        FILTERABLE,
    ] = "ACTIVE"
