"""What the executors read: rows in memory, as the tables have them, found by dictionaries."""

from collections.abc import Mapping
from typing import Any

from tradepost.domain.ids import Ids
from tradepost.domain.line_item import LineItem
from tradepost.domain.order import Order
from tradepost.domain.product import Product
from tradepost.domain.record import Record
from tradepost.domain.user import User
from tradepost.storage.record_statements import statements_of

ORDERS, LINES = 20, 3
NOW = "2026-11-20T08:15:30.123Z"
_MS = 1_795_000_000_000

Row = tuple[Any, ...]


class Shelves:
    """One user with 20 orders of 3 line items over 60 products."""

    def __init__(self) -> None:
        self._ids = Ids()
        self.user = self._row(User, name="Ada Lovelace", email="ada@example.com", status="ACTIVE")
        self.products = [self._product(number) for number in range(ORDERS * LINES)]
        self.orders = [
            self._row(Order, user_id=self.user[0], status="PENDING", currency="EUR", total=LINES * 199_900)
            for _ in range(ORDERS)
        ]
        self.lines = {
            order[0]: [self._line(order, self.products[at * LINES + n]) for n in range(LINES)]
            for at, order in enumerate(self.orders)
        }
        self.users = {self.user[0]: self.user}
        self.product_of = {product[0]: product for product in self.products}

    def _product(self, number: int) -> Row:
        return self._row(
            Product,
            sku=f"SKU-{number:05}",
            name=f"A thing of beauty number {number}",
            price=199_900 + number * 100,
            currency="EUR",
            stock=number,
            status="ACTIVE",
        )

    def _line(self, order: Row, product: Row) -> Row:
        sold = {"order_id": order[0], "product_id": product[0], "quantity": 1, "unit_price": 199_900}
        return self._row(LineItem, **sold, sku=product[1], name=product[2], currency="EUR", total=199_900)

    def _row(self, record: type[Record], **values: Any) -> Row:
        known: Mapping[str, Any] = {
            "id": self._ids.new(_MS),
            "created_at": NOW,
            "updated_at": NOW,
            "version": 1,
            **values,
        }
        return tuple(known.get(name) for name in statements_of(record).names)
