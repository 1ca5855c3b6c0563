"""Orders at random against a model: whatever is done in whatever sequence, stock and totals are right."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests import shop
from tests.service import Service

PENCE = (0, 1, 99, 250, 1999)


@dataclass
class Product:
    """What a product should be like; money in pence."""

    id: str
    price: int
    stock: int | None
    currency: str
    active: bool = True

    def has(self, pieces: int) -> bool:
        return self.stock is None or pieces <= self.stock

    def take(self, pieces: int) -> None:
        if self.stock is not None:
            self.stock -= pieces


@dataclass
class Line:
    """A line with the price it was added for."""

    product: Product
    quantity: int
    price: int


@dataclass
class Order:
    """What an order should be like; its lines by their ids."""

    id: str
    currency: str
    status: str = "PENDING"
    lines: dict[str, Line] = field(default_factory=dict)

    @property
    def open(self) -> bool:
        return self.status == "PENDING"

    def give_back(self) -> None:
        for line in self.lines.values():
            line.product.take(-line.quantity)


Pieces = list[tuple[Product, int]]


def fits(lines: Pieces, currency: str | None) -> bool:
    """Whether new lines can be ordered: active products of one currency, of which there is enough."""
    currencies = {product.currency for product, _ in lines} | ({currency} if currency else set())
    return len(currencies) == 1 and all(product.active for product, _ in lines) and enough(lines, [])


def enough(after: Pieces, held: Pieces) -> bool:
    """Whether the stock has what `after` needs beyond what is `held`."""
    need: dict[str, int] = {}
    for product, quantity in [*after, *((product, -quantity) for product, quantity in held)]:
        need[product.id] = need.get(product.id, 0) + quantity
    goods = {product.id: product for product, _ in [*after, *held]}
    return all(count <= 0 or goods[key].has(count) for key, count in need.items())


QUANTITY = st.integers(1, 4)


class Shop(RuleBasedStateMachine):
    """A user who orders, changes, cancels; a shopkeeper who reprices, restocks and archives."""

    products = Bundle("products")
    orders = Bundle("orders")

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.service = service
        self.mark = shop.unique()
        self.user = shop.a_user(service)
        self.all_products: dict[str, Product] = {}
        self.all_orders: dict[str, Order] = {}

    def ask(self, expected: bool, status: int, method: str, path: str, body: Any = None) -> Any:
        """What the service answers; it has to succeed as expected or refuse with 422."""
        reply = self.service.call(method, path, body)
        assert reply.status == (status if expected else 422), (method, path, body, reply)
        return reply.json if expected and reply.body else None

    @rule(
        target=products,
        price=st.sampled_from(PENCE),
        stock=st.none() | st.integers(0, 8),
        currency=st.sampled_from(["GBP", "GBP", "GBP", "USD"]),
    )
    def stocks(self, price: int, stock: int | None, currency: str) -> Product:
        return self._stocked(price, stock, currency)

    @initialize(target=products)
    def opens(self) -> Product:
        """There is something to order from the beginning."""
        return self._stocked(250, 8, "GBP")

    def _stocked(self, price: int, stock: int | None, currency: str) -> Product:
        made = shop.a_product(self.service, name=self.mark, price=price / 100, stock=stock, currency=currency)
        product = self.all_products[made["id"]] = Product(made["id"], price, stock, currency)
        return product

    @rule(product=products, price=st.sampled_from(PENCE), active=st.booleans(), stock=st.integers(0, 8))
    def changes(self, product: Product, price: int, active: bool, stock: int) -> None:
        body: dict[str, Any] = {"price": price / 100, "status": "ACTIVE" if active else "ARCHIVED"}
        if product.stock is not None:
            body["stock"] = product.stock = stock
        product.price, product.active = price, active
        self.ask(True, 200, "PATCH", f"/v1/products/{product.id}", body)

    @rule(target=orders, lines=st.lists(st.tuples(products, QUANTITY), min_size=1, max_size=4))
    def places(self, lines: list[tuple[Product, int]]) -> Order | None:
        body = shop.order_body(self.user, *[({"id": product.id}, n) for product, n in lines])
        made = self.ask(fits(lines, None), 201, "POST", "/v1/orders", body)
        if made is None:
            return None
        order = self.all_orders[made["id"]] = Order(made["id"], lines[0][0].currency)
        for shown, (product, quantity) in zip(made["lineItems"], lines, strict=True):
            order.lines[shown["id"]] = Line(product, quantity, product.price)
            product.take(quantity)
        return order

    @rule(order=orders, status=st.sampled_from(["PENDING", "FULFILLED", "CANCELLED"]))
    def moves(self, order: Order | None, status: str) -> None:
        if order is None or order.id not in self.all_orders:
            return
        allowed = order.open or status == order.status
        self.ask(allowed, 200, "PATCH", f"/v1/orders/{order.id}", {"status": status})
        if allowed and order.open and status == "CANCELLED":
            order.give_back()
        if allowed:
            order.status = status

    @rule(order=orders, product=products, quantity=QUANTITY, top=st.booleans())
    def adds(self, order: Order | None, product: Product, quantity: int, top: bool) -> None:
        if order is None or order.id not in self.all_orders:
            return
        allowed = order.open and fits([(product, quantity)], order.currency)
        body = {"productId": product.id, "quantity": quantity}
        path = "/v1/line-items" if top else f"/v1/orders/{order.id}/line-items"
        made = self.ask(allowed, 201, "POST", path, {**body, "orderId": order.id} if top else body)
        if made is not None:
            order.lines[made["id"]] = Line(product, quantity, product.price)
            product.take(quantity)

    @rule(order=orders, at=st.integers(0, 9), quantity=QUANTITY, top=st.booleans())
    def requantifies(self, order: Order | None, at: int, quantity: int, top: bool) -> None:
        if order is None or order.id not in self.all_orders:
            return
        key, line = list(order.lines.items())[at % len(order.lines)]
        more = quantity - line.quantity
        if more > 0 and not line.product.active:
            return  # whether an archived product can be ordered more of is not said
        allowed = more == 0 or (order.open and line.product.has(more))
        path = f"/v1/line-items/{key}" if top else f"/v1/orders/{order.id}/line-items/{key}"
        self.ask(allowed, 200, "PATCH", path, {"quantity": quantity})
        if allowed:
            line.product.take(more)
            line.quantity = quantity

    @rule(order=orders, at=st.integers(0, 9))
    def removes(self, order: Order | None, at: int) -> None:
        if order is None or order.id not in self.all_orders:
            return
        key, line = list(order.lines.items())[at % len(order.lines)]
        allowed = order.open and len(order.lines) > 1
        self.ask(allowed, 204, "DELETE", f"/v1/line-items/{key}")
        if allowed:
            line.product.take(-line.quantity)
            del order.lines[key]

    @rule(
        order=orders,
        kept=st.dictionaries(st.integers(0, 3), QUANTITY, max_size=3),
        new=st.lists(st.tuples(products, QUANTITY), max_size=2),
        status=st.sampled_from([None, None, "FULFILLED", "CANCELLED"]),
    )
    def replaces(
        self, order: Order | None, kept: dict[int, int], new: list[tuple[Product, int]], status: str | None
    ) -> None:
        if order is None or order.id not in self.all_orders or not order.open:
            return
        ids = list(order.lines)
        keeps = {ids[at]: quantity for at, quantity in kept.items() if at < len(ids)}
        if not keeps and not new:
            return
        if any(
            not order.lines[key].product.active and keeps[key] > order.lines[key].quantity for key in keeps
        ):
            return
        held = [(line.product, line.quantity) for line in order.lines.values()]
        after = [(order.lines[key].product, quantity) for key, quantity in keeps.items()] + new
        orderable = all(product.active and product.currency == order.currency for product, _ in new)
        allowed = orderable and enough(after, held)
        lines: list[dict[str, Any]] = [
            {"id": key, "productId": order.lines[key].product.id, "quantity": quantity}
            for key, quantity in keeps.items()
        ]
        lines += [{"productId": product.id, "quantity": quantity} for product, quantity in new]
        body = {"userId": self.user["id"], "lineItems": lines, **({"status": status} if status else {})}
        made = self.ask(allowed, 200, "PUT", f"/v1/orders/{order.id}", body)
        if made is None:
            return
        order.give_back()
        order.lines = {
            key: Line(order.lines[key].product, quantity, order.lines[key].price)
            for key, quantity in keeps.items()
        }
        fresh = [shown for shown in made["lineItems"] if shown["id"] not in keeps]
        for shown, (product, quantity) in zip(fresh, new, strict=True):
            order.lines[shown["id"]] = Line(product, quantity, product.price)
        for line in order.lines.values():
            line.product.take(line.quantity)
        order.status = status or "PENDING"
        if order.status == "CANCELLED":
            order.give_back()

    @rule(order=consumes(orders))
    def deletes(self, order: Order | None) -> None:
        if order is None or order.id not in self.all_orders:
            return
        reply = self.service.call("DELETE", f"/v1/orders/{order.id}")
        assert reply.status == (409 if order.status == "FULFILLED" else 204)
        if reply.status == 204:
            if order.open:
                order.give_back()
            del self.all_orders[order.id]

    @invariant()
    def stock_is_right(self) -> None:
        shown = shop.walked(self.service, f"/v1/products?name={self.mark}&limit=200")
        assert {each["id"]: each["stock"] for each in shown} == {
            key: product.stock for key, product in self.all_products.items()
        }

    @invariant()
    def orders_are_right(self) -> None:
        shown = {
            each["id"]: each for each in shop.walked(self.service, f"/v1/orders?userId={self.user['id']}")
        }
        assert set(shown) == set(self.all_orders)
        for key, order in self.all_orders.items():
            assert shown[key]["status"] == order.status
            assert (
                shown[key]["total"] == sum(line.quantity * line.price for line in order.lines.values()) / 100
            )
            assert {
                line["id"]: (line["productId"], line["quantity"], line["unitPrice"], line["total"])
                for line in shown[key]["lineItems"]
            } == {
                key: (line.product.id, line.quantity, line.price / 100, line.quantity * line.price / 100)
                for key, line in order.lines.items()
            }


def test_orders_follow_their_model(service: Service) -> None:
    """After any sequence of calls each order's total is the sum of its lines and each stock what it should be."""

    class Here(Shop):
        def __init__(self) -> None:
            super().__init__(service)

    run_state_machine_as_test(Here, settings=settings(max_examples=25, stateful_step_count=30, deadline=None))
