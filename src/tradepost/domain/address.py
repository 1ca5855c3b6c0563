"""An address of a user, where orders can be shipped."""

from typing import Annotated, ClassVar

from msgspec import Meta

from tradepost.domain.country import check_country
from tradepost.domain.record import FILTERABLE, READ_ONLY, BelongsTo, Checked, Dated
from tradepost.domain.text import Code, Name
from tradepost.domain.user import User


class Address(Dated, kw_only=True):
    """Where a user receives orders."""

    kind: ClassVar[str] = "address"
    plural: ClassVar[str] = "addresses"

    user_id: Annotated[
        str,
        Meta(description="The user this address belongs to."),
        READ_ONLY,
        BelongsTo(User, reverse="addresses"),
    ]
    recipient: Annotated[Name, Meta(description="Name of the recipient.")]
    line1: Annotated[Name, Meta(description="Street and number.")]
    line2: Annotated[Name | None, Meta(description="Building, floor or care of.")] = None
    city: Annotated[Name, Meta(description="Town or city."), FILTERABLE]
    region: Annotated[Name | None, Meta(description="State, province or county.")] = None
    postal_code: Annotated[Code, Meta(description="Postal code."), FILTERABLE]
    country: Annotated[str, Meta(description="ISO 3166-1 alpha-2 code."), FILTERABLE, Checked(check_country)]
