"""A product: an item for sale, with its price and, if it is tracked, its stock."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from tradepost.domain.money import check_currency
from tradepost.domain.record import FILTERABLE, MONEY, RANGED, SORTABLE, UNIQUE, Checked, Dated
from tradepost.domain.text import Description, Name, Sku

Stock = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class Product(Dated, kw_only=True):
    """An item for sale."""

    kind: ClassVar[str] = "product"
    plural: ClassVar[str] = "products"
    hides_deleted: ClassVar[bool] = True

    sku: Annotated[
        Sku, Meta(description="Stock keeping unit; unique among products."), UNIQUE, SORTABLE, FILTERABLE
    ]
    name: Annotated[Name, Meta(description="Name of the product."), SORTABLE, FILTERABLE]
    description: Annotated[Description | None, Meta(description="Description of the product.")] = None
    price: Annotated[
        int,
        Meta(description="Price of one unit, in major units of the currency."),
        MONEY,
        SORTABLE,
        FILTERABLE,
        RANGED,
    ]
    currency: Annotated[str, Meta(description="ISO 4217 code."), FILTERABLE, Checked(check_currency)]
    stock: Annotated[
        Stock | None, Meta(description="Units in stock; null if stock is not tracked."), FILTERABLE
    ] = None
    status: Annotated[
        Literal["ACTIVE", "ARCHIVED"],
        Meta(description="An archived product cannot be ordered."),
        FILTERABLE,
    ] = "ACTIVE"
