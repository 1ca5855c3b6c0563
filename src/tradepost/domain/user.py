"""A user: a person who can place orders."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from tradepost.domain.email import check_email
from tradepost.domain.record import FILTERABLE, SORTABLE, UNIQUE_FOLDED, Checked, Dated
from tradepost.domain.text import EmailAddress, Name


class User(Dated, kw_only=True):
    """A person who can place orders."""

    kind: ClassVar[str] = "user"
    plural: ClassVar[str] = "users"
    hides_deleted: ClassVar[bool] = True
    is_owner: ClassVar[bool] = True

    name: Annotated[Name, Meta(description="Name of the user."), SORTABLE, FILTERABLE]
    email: Annotated[
        EmailAddress,
        Meta(description="Email address; unique among users, regardless of case."),
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
