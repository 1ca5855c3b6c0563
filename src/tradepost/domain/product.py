"""A product: something that can be ordered, at a price, with or without a stock that is tracked."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from tradepost.domain.money import check_currency
from tradepost.domain.record import FILTERABLE, MONEY, RANGED, SORTABLE, UNIQUE, Checked, Dated
from tradepost.domain.text import Description, Name, Sku

Stock = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class Product(Dated, kw_only=True):
    """Something that can be ordered."""

    kind: ClassVar[str] = "product"
    plural: ClassVar[str] = "products"
    hides_deleted: ClassVar[bool] = True

    sku: Annotated[Sku, Meta(description="Stock keeping unit; unique."), UNIQUE, SORTABLE, FILTERABLE]
    name: Annotated[Name, Meta(description="What it is called."), SORTABLE, FILTERABLE]
    description: Annotated[Description | None, Meta(description="More about it.")] = None
    price: Annotated[
        int,
        Meta(description="Price of one, in major units of the currency."),
        MONEY,
        SORTABLE,
        FILTERABLE,
        RANGED,
    ]
    currency: Annotated[str, Meta(description="ISO 4217."), FILTERABLE, Checked(check_currency)]
    stock: Annotated[Stock | None, Meta(description="Pieces left; null if not tracked."), FILTERABLE] = None
    status: Annotated[
        Literal["ACTIVE", "ARCHIVED"],
        Meta(description="An archived product cannot be ordered."),
        FILTERABLE,
    ] = "ACTIVE"
