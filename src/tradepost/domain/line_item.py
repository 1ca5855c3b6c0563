"""A line item: so many of one product in one order, with snapshots of what the product was then."""

from typing import Annotated, ClassVar

from msgspec import Meta

from tradepost.domain.order import MAX_LINES, Order
from tradepost.domain.product import Product
from tradepost.domain.record import FILTERABLE, MONEY, READ_ONLY, BelongsTo, Dated

Quantity = Annotated[int, Meta(ge=1, le=10_000)]


class LineItem(Dated, kw_only=True):
    """So many of one product in one order."""

    kind: ClassVar[str] = "line_item"
    plural: ClassVar[str] = "line_items"

    order_id: Annotated[
        str,
        Meta(description="The order it is part of."),
        FILTERABLE,
        BelongsTo(Order, reverse="line_items", embedded=True, at_most=MAX_LINES),
    ]
    product_id: Annotated[
        str,
        Meta(description="The product ordered; cannot change."),
        FILTERABLE,
        BelongsTo(Product, reverse="line_items"),
    ]
    quantity: Annotated[Quantity, Meta(description="How many.")]
    sku: Annotated[str, Meta(description="The product's sku when the line was added."), READ_ONLY]
    name: Annotated[str, Meta(description="The product's name when the line was added."), READ_ONLY]
    unit_price: Annotated[
        int, Meta(description="The product's price when the line was added."), MONEY, READ_ONLY
    ]
    currency: Annotated[str, Meta(description="ISO 4217; the order's."), READ_ONLY]
    total: Annotated[int, Meta(description="Quantity times unit price."), MONEY, READ_ONLY]
