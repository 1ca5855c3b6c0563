"""An address of a user, to which orders can be sent."""

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
        Meta(description="The user whose address it is."),
        READ_ONLY,
        BelongsTo(User, reverse="addresses"),
    ]
    recipient: Annotated[Name, Meta(description="Who receives there.")]
    line1: Annotated[Name, Meta(description="Street and number.")]
    line2: Annotated[Name | None, Meta(description="Building, floor, care of.")] = None
    city: Annotated[Name, Meta(description="Town or city."), FILTERABLE]
    region: Annotated[Name | None, Meta(description="State, province or county.")] = None
    postal_code: Annotated[Code, Meta(description="Postal code."), FILTERABLE]
    country: Annotated[str, Meta(description="ISO 3166-1 alpha-2."), FILTERABLE, Checked(check_country)]
