"""A line item: a quantity of one product in an order, with a snapshot of the product's data."""

from typing import Annotated, ClassVar

from msgspec import Meta

from tradepost.domain.order import MAX_LINES, Order
from tradepost.domain.product import Product
from tradepost.domain.record import FILTERABLE, MONEY, READ_ONLY, BelongsTo, Dated

Quantity = Annotated[int, Meta(ge=1, le=10_000)]


class LineItem(Dated, kw_only=True):
    """A quantity of one product in an order."""

    kind: ClassVar[str] = "line_item"
    plural: ClassVar[str] = "line_items"

    order_id: Annotated[
        str,
        Meta(description="The order this line item belongs to."),
        FILTERABLE,
        BelongsTo(Order, reverse="line_items", embedded=True, at_most=MAX_LINES),
    ]
    product_id: Annotated[
        str,
        Meta(description="The product ordered. It cannot be changed."),
        FILTERABLE,
        BelongsTo(Product, reverse="line_items"),
    ]
    quantity: Annotated[Quantity, Meta(description="Number of units ordered.")]
    sku: Annotated[str, Meta(description="The product's SKU when the line item was added."), READ_ONLY]
    name: Annotated[str, Meta(description="The product's name when the line item was added."), READ_ONLY]
    unit_price: Annotated[
        int, Meta(description="The product's price when the line item was added."), MONEY, READ_ONLY
    ]
    currency: Annotated[str, Meta(description="ISO 4217 code; the currency of the order."), READ_ONLY]
    total: Annotated[int, Meta(description="`quantity` times `unitPrice`."), MONEY, READ_ONLY]
