"""Orders: the business rules, one by one, all at random against a model, and under many buyers at once."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests import shop
from tests.service import Service

STATES = ("PENDING", "FULFILLED", "CANCELLED")
MOVES = {("PENDING", "FULFILLED"), ("PENDING", "CANCELLED")}


def _path(order: Any) -> str:
    return f"/v1/orders/{order['id']}"


def _order(service: Service, order: Any) -> Any:
    """The order as it is; fails the test if its figures do not agree with each other."""
    found = shop.get(service, _path(order))
    lines = shop.walked(service, f"{_path(order)}/line-items")
    assert found["lineItems"] == lines
    assert found["total"] == round(sum(round(line["total"] * 10_000) for line in lines) / 10_000, 4)
    for line in lines:
        assert round(line["total"] * 10_000) == round(line["unitPrice"] * 10_000) * line["quantity"]
        assert line["currency"] == found["currency"]
        assert shop.get(service, f"/v1/line-items/{line['id']}") == line
    return found


def _refused(service: Service, order: Any, product: Any, *requests: tuple[str, str, Any]) -> None:
    """Each request is 422, and neither the order nor the product's stock changes by it."""
    before, stock = shop.get(service, _path(order)), shop.stock_of(service, product)
    for method, path, body in requests:
        reply = service.call(method, path, body)
        assert reply.status == 422, (method, path, body, reply)
    assert shop.get(service, _path(order)) == before
    assert shop.stock_of(service, product) == stock


# --- placing ---


def test_an_order_is_what_was_ordered_at_the_prices_of_the_moment(service: Service) -> None:
    """Prices, names and skus are taken when the order is placed; total is their sum; status is PENDING."""
    user = shop.a_user(service)
    one, other = shop.a_product(service, price=19.99, name="Lantern"), shop.a_product(service, price=0.1)
    order = shop.an_order(service, (one, 3), (other, 7), user=user)
    assert (order["status"], order["currency"], order["total"], order["userId"]) == (
        "PENDING",
        "GBP",
        60.67,
        user["id"],
    )
    first = order["lineItems"][0]
    expected = {"orderId": order["id"], "productId": one["id"], "quantity": 3, "sku": one["sku"]}
    expected |= {"name": "Lantern", "unitPrice": 19.99, "total": 59.97}
    assert {name: first[name] for name in expected} == expected
    assert (shop.stock_of(service, one), shop.stock_of(service, other)) == (97, 93)
    changed = {"price": 25, "name": "Lamp", "sku": shop.unique()}
    assert service.call("PATCH", f"/v1/products/{one['id']}", changed).status == 200
    assert _order(service, order) == order


@pytest.mark.parametrize(
    ("price", "quantity", "currency", "total"),
    [
        (0.1, 3, "GBP", 0.3),
        (0.07, 100, "USD", 7.0),
        (1.005, 3, "KWD", 3.015),
        (333, 3, "JPY", 999),
        (0, 10_000, "GBP", 0),
        (1_000_000_000, 250, "EUR", 250_000_000_000),
        (0.0001, 10_000, "CLF", 1),
        (4.35, 100, "GBP", 435.0),
    ],
)
def test_money_is_never_added_up_in_binary(
    service: Service, price: float, quantity: int, currency: str, total: float
) -> None:
    """A total is exact to the last minor unit in every currency."""
    product = shop.a_product(service, price=price, currency=currency, stock=None)
    order = shop.an_order(service, *[(product, quantity)] * 3)
    assert [line["total"] for line in order["lineItems"]] == [total] * 3
    assert order["total"] == round(total * 3, 4)


@pytest.mark.parametrize(
    ("currency", "price"),
    [("GBP", 1.001), ("GBP", 0.005), ("JPY", 1.5), ("KWD", 1.0001), ("GBP", 19.999), ("JPY", 0.01)],
)
def test_more_decimals_than_the_currency_has_are_422(service: Service, currency: str, price: float) -> None:
    """More decimals than the currency has are refused, not rounded."""
    reply = service.post("/v1/products", shop.product_body(price=price, currency=currency))
    assert (reply.status, shop.fields_of(reply.json)) == (422, {"price"})


def test_a_total_no_json_number_holds_is_422(service: Service) -> None:
    """An order whose total a JSON number could not carry exactly is refused, and takes no stock."""
    dear = shop.a_product(service, price=1_000_000_000, stock=100_000)
    reply = service.post("/v1/orders", shop.order_body(shop.a_user(service), (dear, 10_000)))
    assert reply.status == 422
    assert shop.stock_of(service, dear) == 100_000
    order = shop.an_order(service, (dear, 900))
    _refused(
        service,
        order,
        dear,
        ("PATCH", f"/v1/line-items/{order['lineItems'][0]['id']}", {"quantity": 9999}),
        ("POST", f"{_path(order)}/line-items", {"productId": dear["id"], "quantity": 9999}),
        ("PATCH", _path(order), {"lineItems": [{"productId": dear["id"], "quantity": 9999}]}),
    )


def test_the_same_product_twice_stays_two_lines(service: Service) -> None:
    """Lines of one product are kept apart, and stock is taken for both."""
    product = shop.a_product(service, stock=5)
    order = shop.an_order(service, (product, 2), (product, 3))
    assert [line["quantity"] for line in order["lineItems"]] == [2, 3]
    assert shop.stock_of(service, product) == 0
    again = shop.a_product(service, stock=4)
    reply = service.post("/v1/orders", shop.order_body(shop.a_user(service), (again, 2), (again, 3)))
    assert (reply.status, shop.stock_of(service, again)) == (422, 4)


def test_lines_keep_the_order_they_were_sent_in(service: Service) -> None:
    """Lines are shown as they were ordered."""
    goods = [shop.a_product(service) for _ in range(4)]
    lines = [(goods[i], n + 1) for n, i in enumerate((3, 0, 2, 1, 0))]
    order = shop.an_order(service, *lines)
    assert [(line["productId"], line["quantity"]) for line in order["lineItems"]] == [
        (product["id"], quantity) for product, quantity in lines
    ]


def test_untracked_stock_is_never_short_and_stays_untracked(service: Service) -> None:
    """A product without stock can be ordered in any number and stays null throughout."""
    product = shop.a_product(service, stock=None)
    order = shop.an_order(service, (product, 10_000))
    service.call("PATCH", f"/v1/line-items/{order['lineItems'][0]['id']}", {"quantity": 1})
    service.call("PATCH", _path(order), {"status": "CANCELLED"})
    assert shop.stock_of(service, product) is None


@pytest.mark.parametrize("count", [0, 1, 100, 101])
def test_an_order_has_1_to_100_lines(service: Service, count: int) -> None:
    """One to a hundred lines; none and more are 422, in a new order and in a changed one."""
    product = shop.a_product(service, stock=None)
    body = shop.order_body(shop.a_user(service), *[(product, 1)] * count)
    reply = service.post("/v1/orders", body)
    fits = 1 <= count <= 100
    assert reply.status == (201 if fits else 422)
    order = shop.an_order(service, (product, 1))
    assert service.call("PATCH", _path(order), {"lineItems": body["lineItems"]}).status == (
        200 if fits else 422
    )


def test_a_line_beyond_the_hundredth_is_422(service: Service) -> None:
    """No way of adding a line makes a hundred and first."""
    product = shop.a_product(service, stock=200)
    order = shop.an_order(service, *[(product, 1)] * 100)
    line = {"productId": product["id"], "quantity": 1}
    _refused(
        service,
        order,
        product,
        ("POST", f"{_path(order)}/line-items", line),
        ("POST", "/v1/line-items", {**line, "orderId": order["id"]}),
    )


def test_what_cannot_be_ordered_is_422_and_changes_nothing(service: Service) -> None:
    """Short stock, unknown, archived and deleted products, another currency: 422, no order and no stock taken."""
    user, good = shop.a_user(service), shop.a_product(service, stock=10)
    archived, dollars = shop.a_product(service, status="ARCHIVED"), shop.a_product(service, currency="USD")
    few, gone = shop.a_product(service, stock=1), shop.a_product(service)
    service.call("DELETE", f"/v1/products/{gone['id']}")
    order = shop.an_order(service, (good, 1), user=user)
    bad = [
        (archived, 1),
        (dollars, 1),
        (few, 2),
        (gone, 1),
        *[({"id": other}, 1) for other in ("nothing", "", user["id"])],
    ]
    for product, quantity in bad:
        line = {"productId": product["id"], "quantity": quantity}
        _refused(
            service,
            order,
            good,
            ("POST", "/v1/orders", shop.order_body(user, (good, 1), (product, quantity))),
            ("POST", f"{_path(order)}/line-items", line),
            ("POST", "/v1/line-items", {**line, "orderId": order["id"]}),
            ("PATCH", _path(order), {"lineItems": [*order["lineItems"], line]}),
            ("PUT", _path(order), {**order, "lineItems": [line, *order["lineItems"]]}),
        )
    assert len(shop.walked(service, f"/v1/orders?userId={user['id']}")) == 1
    assert shop.stock_of(service, few) == 1


@pytest.mark.parametrize("make", ["unknown", "empty", "deactivated", "deleted", "a product's id"])
def test_an_order_is_placed_for_an_active_user(service: Service, make: str) -> None:
    """An unknown, deactivated or deleted user cannot order: 422 naming userId, no stock taken."""
    product = shop.a_product(service)
    others = {"unknown": "nobody", "empty": "", "a product's id": product["id"]}
    user = {"id": others[make]} if make in others else shop.a_user(service)
    if make == "deactivated":
        service.call("PATCH", f"/v1/users/{user['id']}", {"status": "DEACTIVATED"})
    elif make == "deleted":
        service.call("DELETE", f"/v1/users/{user['id']}")
    reply = service.post("/v1/orders", shop.order_body(user, (product, 1)))
    assert (reply.status, shop.fields_of(reply.json)) == (422, {"userId"})
    assert shop.stock_of(service, product) == 100


@pytest.mark.parametrize("status", ["FULFILLED", "CANCELLED"])
def test_a_new_order_is_pending(service: Service, status: str) -> None:
    """An order begins as PENDING: no other state can be asked for, PENDING can."""
    user, product = shop.a_user(service), shop.a_product(service)
    assert service.post("/v1/orders", shop.order_body(user, (product, 1), status=status)).status == 422
    assert shop.stock_of(service, product) == 100
    assert shop.an_order(service, (product, 1), user=user, status="PENDING")["status"] == "PENDING"


# --- moving on ---


def _in_state(service: Service, state: str, *lines: tuple[Any, int]) -> Any:
    order = shop.an_order(service, *lines)
    if state != "PENDING":
        assert service.call("PATCH", _path(order), {"status": state}).status == 200
    return shop.get(service, _path(order))


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("after", [*STATES, "LOST"])
def test_the_moves_of_an_order(service: Service, before: str, after: str, method: str) -> None:
    """PENDING goes to FULFILLED or CANCELLED and both are final; setting the present state changes nothing."""
    product = shop.a_product(service, stock=10)
    order = _in_state(service, before, (product, 4))
    tag, said = service.get(_path(order)).headers["etag"], shop.told(service, f"orders/{order['id']}")
    body = {"status": after} if method == "PATCH" else {**order, "status": after}
    reply = service.call(method, _path(order), body)
    moved = (before, after) in MOVES
    assert reply.status == (200 if moved or before == after else 422)
    now = service.get(_path(order))
    assert now.json["status"] == (after if moved else before)
    assert (now.headers["etag"] == tag) != moved
    news = shop.told(service, f"orders/{order['id']}")[len(said) :]
    assert news == ([f"order.{after.lower()}"] if moved else [])
    assert shop.stock_of(service, product) == (10 if now.json["status"] == "CANCELLED" else 6)
    if reply.status == 422:
        assert shop.fields_of(reply.json) == {"status"}


def test_a_put_without_a_status_is_a_move_to_pending(service: Service) -> None:
    """A PUT that omits status sets its default: nothing for a PENDING order, 422 for a final one."""
    for state, status in (("PENDING", 200), ("FULFILLED", 422), ("CANCELLED", 422)):
        order = _in_state(service, state)
        body = {name: value for name, value in order.items() if name != "status"}
        assert service.call("PUT", _path(order), body).status == status


@pytest.mark.parametrize("end", ["cancel", "delete", "cancel and delete"])
def test_stock_is_given_back_once(service: Service, end: str) -> None:
    """Cancelling or deleting a PENDING order gives tracked stock back, once, whatever follows."""
    one, other = shop.a_product(service, stock=5), shop.a_product(service, stock=7)
    order = shop.an_order(service, (one, 2), (other, 7), (one, 3))
    assert (shop.stock_of(service, one), shop.stock_of(service, other)) == (0, 0)
    if "cancel" in end:
        for _ in range(2):
            assert service.call("PATCH", _path(order), {"status": "CANCELLED"}).status == 200
    if "delete" in end:
        assert service.call("DELETE", _path(order)).status == 204
        assert service.call("DELETE", _path(order)).status == 404
    assert (shop.stock_of(service, one), shop.stock_of(service, other)) == (5, 7)


def test_stock_goes_back_to_archived_products_too(service: Service) -> None:
    """What was taken is given back also where the product has been archived since; a deleted one is no hindrance."""
    archived, gone = shop.a_product(service, stock=5), shop.a_product(service, stock=5)
    order = shop.an_order(service, (archived, 2), (gone, 2))
    service.call("PATCH", f"/v1/products/{archived['id']}", {"status": "ARCHIVED"})
    service.call("DELETE", f"/v1/products/{gone['id']}")
    assert service.call("PATCH", _path(order), {"status": "CANCELLED"}).status == 200
    assert shop.stock_of(service, archived) == 5


def test_a_fulfilled_order_keeps_its_stock(service: Service) -> None:
    """What was sold is sold."""
    product = shop.a_product(service, stock=5)
    order = _in_state(service, "FULFILLED", (product, 2))
    assert shop.stock_of(service, product) == 3
    assert service.call("DELETE", _path(order)).status == 409
    assert shop.stock_of(service, product) == 3
    assert _order(service, order) == order


@pytest.mark.parametrize("state", ["PENDING", "CANCELLED"])
def test_a_deleted_order_is_gone_with_its_lines(service: Service, state: str) -> None:
    """A deleted order and its lines are 404 at every address, and a second DELETE is 404."""
    order = _in_state(service, state)
    line = order["lineItems"][0]["id"]
    assert service.call("DELETE", _path(order)).status == 204
    for path in (
        _path(order),
        f"{_path(order)}/line-items",
        f"{_path(order)}/line-items/{line}",
        f"/v1/line-items/{line}",
    ):
        assert service.get(path).status == 404
    assert service.call("DELETE", _path(order)).status == 404
    assert service.call("PATCH", _path(order), {}).status == 404


# --- lines ---


def _addresses(order: Any, line: Any) -> list[str]:
    """Both addresses of a line item."""
    return [f"/v1/line-items/{line['id']}", f"{_path(order)}/line-items/{line['id']}"]


@pytest.mark.parametrize("top", [True, False])
def test_a_line_is_added_at_todays_price(service: Service, top: bool) -> None:
    """A line added at either address takes today's price and its stock, and counts into the total."""
    product = shop.a_product(service, price=2, stock=10)
    order = shop.an_order(service, (product, 1))
    service.call("PATCH", f"/v1/products/{product['id']}", {"price": 3, "name": "Lamp"})
    body = {"productId": product["id"], "quantity": 4}
    path = "/v1/line-items" if top else f"{_path(order)}/line-items"
    reply = service.post(path, {**body, "orderId": order["id"]} if top else body)
    assert reply.status == 201
    line = reply.json
    assert (line["unitPrice"], line["total"], line["name"], line["orderId"]) == (3, 12, "Lamp", order["id"])
    assert reply.headers["location"] == f"{path}/{line['id']}"
    now = _order(service, order)
    assert (now["total"], now["lineItems"]) == (14, [*order["lineItems"], line])
    assert shop.stock_of(service, product) == 5


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
@pytest.mark.parametrize("at", [0, 1])
def test_a_quantity_changes_at_the_price_of_its_line(service: Service, at: int, method: str) -> None:
    """More pieces are taken and fewer given back, at the line's own price; total follows."""
    product = shop.a_product(service, price=2, stock=10)
    order = shop.an_order(service, (product, 4), (product, 1))
    service.call("PATCH", f"/v1/products/{product['id']}", {"price": 30})
    line = order["lineItems"][0]
    path = _addresses(order, line)[at]
    for quantity, stock in ((9, 0), (1, 8), (9, 0)):
        body = {"quantity": quantity} if method == "PATCH" else {**line, "quantity": quantity}
        reply = service.call(method, path, body)
        assert reply.status == 200
        assert (reply.json["quantity"], reply.json["unitPrice"], reply.json["total"]) == (
            quantity,
            2,
            2 * quantity,
        )
        assert (_order(service, order)["total"], shop.stock_of(service, product)) == (2 * quantity + 2, stock)
    _refused(service, order, product, (method, path, {**line, "quantity": 11}))


@pytest.mark.parametrize("at", [0, 1])
def test_a_line_can_be_removed_but_the_last(service: Service, at: int) -> None:
    """Removing a line gives its stock back; the last one cannot be removed."""
    product = shop.a_product(service, price=2, stock=10)
    order = shop.an_order(service, (product, 4), (product, 1))
    gone, last = order["lineItems"]
    assert service.call("DELETE", _addresses(order, gone)[at]).status == 204
    for path in _addresses(order, gone):
        assert service.get(path).status == 404
        assert service.call("DELETE", path).status == 404
    now = _order(service, order)
    assert (now["total"], now["lineItems"], shop.stock_of(service, product)) == (2, [last], 9)
    _refused(service, order, product, ("DELETE", _addresses(order, last)[at], None))


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
@pytest.mark.parametrize("at", [0, 1])
def test_only_the_quantity_of_a_line_can_change(service: Service, at: int, method: str) -> None:
    """The product and, where it can be said, the order of a line stay: 422 naming the member."""
    product, other = shop.a_product(service), shop.a_product(service)
    order, another = shop.an_order(service, (product, 1)), shop.an_order(service, (product, 1))
    line = order["lineItems"][0]
    path = _addresses(order, line)[at]
    changes = [{"productId": other["id"]}, *([{"orderId": another["id"]}] if at == 0 else [])]
    for change in changes:
        body = change if method == "PATCH" else {**line, **change}
        reply = service.call(method, path, body)
        assert (reply.status, shop.fields_of(reply.json)) == (422, set(change))
    assert _order(service, order) == order
    assert shop.stock_of(service, other) == 100


@pytest.mark.parametrize("state", ["FULFILLED", "CANCELLED"])
def test_the_lines_of_a_final_order_cannot_change(service: Service, state: str) -> None:
    """Adding, changing, removing or replacing lines of a FULFILLED or CANCELLED order is 422."""
    product = shop.a_product(service, stock=10)
    order = _in_state(service, state, (product, 2), (product, 1))
    line, other = order["lineItems"]
    new = {"productId": product["id"], "quantity": 1}
    requests: list[tuple[str, str, Any]] = [
        ("POST", f"{_path(order)}/line-items", new),
        ("POST", "/v1/line-items", {**new, "orderId": order["id"]}),
        ("PATCH", _path(order), {"lineItems": [line]}),
        ("PATCH", _path(order), {"lineItems": [{**line, "quantity": 1}, other]}),
        ("PUT", _path(order), {**order, "lineItems": [line, other, new]}),
    ]
    for path in _addresses(order, line):
        requests += [
            ("PATCH", path, {"quantity": 1}),
            ("PUT", path, {**line, "quantity": 3}),
            ("DELETE", path, None),
        ]
    _refused(service, order, product, *requests)
    assert service.call("PATCH", _addresses(order, line)[0], {"quantity": 2}).status == 200


def test_a_line_needs_an_order(service: Service) -> None:
    """At /line-items the order is required, and one that is not there is 422; below an unknown order it is 404."""
    line = {"productId": shop.a_product(service)["id"], "quantity": 1}
    for wrong in ({}, {"orderId": "x"}, {"orderId": ""}, {"orderId": None}):
        reply = service.post("/v1/line-items", line | wrong)
        assert (reply.status, shop.fields_of(reply.json)) == (422, {"orderId"})
    assert service.post("/v1/orders/x/line-items", line).status == 404


def test_the_order_of_a_line_comes_from_the_path(service: Service) -> None:
    """Below an order the path says which order; what the body says of it does not count."""
    order, other = shop.an_order(service), shop.an_order(service)
    line = {"productId": shop.a_product(service)["id"], "quantity": 1, "orderId": other["id"]}
    assert service.made(f"{_path(order)}/line-items", line)["orderId"] == order["id"]
    assert _order(service, other) == other


def test_a_put_keeps_the_lines_it_names(service: Service) -> None:
    """A line that carries the id of a line of the order keeps it with its snapshots; any other is new, at today's price."""
    one, other = shop.a_product(service, price=2, stock=20), shop.a_product(service, price=5, stock=20)
    order = shop.an_order(service, (one, 1), (one, 2), (other, 3))
    for product in (one, other):
        service.call("PATCH", f"/v1/products/{product['id']}", {"price": 7})
    first, second, third = order["lineItems"]
    foreign = shop.an_order(service, (other, 1))["lineItems"][0]
    lines = [
        {"id": second["id"], "productId": one["id"], "quantity": 5},
        {"productId": other["id"], "quantity": 1},
        {**foreign, "quantity": 2},
        {"id": third["id"], "productId": other["id"], "quantity": 3},
        {"id": "no line", "productId": one["id"], "quantity": 1},
    ]
    reply = service.call("PUT", _path(order), {"userId": order["userId"], "lineItems": lines})
    assert reply.status == 200
    now = _order(service, order)
    assert reply.json == now
    found = {line["id"]: line for line in now["lineItems"]}
    assert len(found) == 5
    assert first["id"] not in found
    assert foreign["id"] not in found
    assert found.pop(third["id"]) == third
    kept = found.pop(second["id"])
    assert (kept["quantity"], kept["unitPrice"], kept["total"], kept["createdAt"]) == (
        5,
        2,
        10,
        second["createdAt"],
    )
    assert Counter(
        (line["productId"], line["quantity"], line["unitPrice"]) for line in found.values()
    ) == Counter([(other["id"], 1, 7), (other["id"], 2, 7), (one["id"], 1, 7)])
    assert now["total"] == 10 + 15 + 7 + 14 + 7
    assert (shop.stock_of(service, one), shop.stock_of(service, other)) == (14, 13)
    assert shop.get(service, f"/v1/line-items/{foreign['id']}") == foreign


def test_a_line_cannot_be_kept_twice(service: Service) -> None:
    """One line cannot become two by being named twice."""
    product = shop.a_product(service, stock=10)
    order = shop.an_order(service, (product, 1))
    line = order["lineItems"][0]
    _refused(
        service,
        order,
        product,
        ("PUT", _path(order), {**order, "lineItems": [line, line]}),
        ("PATCH", _path(order), {"lineItems": [line, {**line, "quantity": 2}]}),
    )


def test_a_kept_line_does_not_become_another_product_at_the_old_price(service: Service) -> None:
    """A line keeps its product: naming its id with another product is refused or makes a new line, at its own price."""
    cheap, dear = shop.a_product(service, price=1), shop.a_product(service, price=1000)
    order = shop.an_order(service, (cheap, 1))
    line = order["lineItems"][0]
    reply = service.call("PATCH", _path(order), {"lineItems": [{**line, "productId": dear["id"]}]})
    now = _order(service, order)
    if reply.status == 200:
        (new,) = now["lineItems"]
        assert (new["productId"], new["unitPrice"], new["sku"]) == (dear["id"], 1000, dear["sku"])
        assert new["id"] != line["id"]
    else:
        assert (reply.status, now) == (422, order)


def test_lines_are_kept_though_their_product_cannot_be_ordered_any_more(service: Service) -> None:
    """An order with lines of archived or deleted products can still be changed otherwise and moved on."""
    archived, gone, fresh = (shop.a_product(service, stock=10) for _ in range(3))
    order = shop.an_order(service, (archived, 2), (gone, 2))
    service.call("PATCH", f"/v1/products/{archived['id']}", {"status": "ARCHIVED"})
    service.call("DELETE", f"/v1/products/{gone['id']}")
    more = [*order["lineItems"], {"productId": fresh["id"], "quantity": 1}]
    assert service.call("PATCH", _path(order), {"lineItems": more}).status == 200
    assert [line["sku"] for line in _order(service, order)["lineItems"]][:2] == [archived["sku"], gone["sku"]]
    assert service.call("DELETE", f"/v1/line-items/{order['lineItems'][1]['id']}").status == 204
    assert service.call("PATCH", _path(order), {"status": "FULFILLED"}).status == 200


def test_lines_can_change_with_the_status_in_one_request(service: Service) -> None:
    """A PENDING order takes new lines and its last status in one step; cancelling gives back what the lines then hold."""
    product = shop.a_product(service, stock=10)
    order = shop.an_order(service, (product, 2))
    line = {**order["lineItems"][0], "quantity": 5}
    done = service.call("PATCH", _path(order), {"lineItems": [line], "status": "FULFILLED"})
    assert (done.status, done.json["total"], shop.stock_of(service, product)) == (200, 12.5, 5)
    other = shop.an_order(service, (product, 2))
    line = {**other["lineItems"][0], "quantity": 4}
    done = service.call("PATCH", _path(other), {"lineItems": [line], "status": "CANCELLED"})
    assert (done.status, shop.stock_of(service, product)) == (200, 5)


# --- whose, and where to ---


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
def test_the_user_of_an_order_cannot_change(service: Service, method: str) -> None:
    """`userId` is for good: 422 naming it."""
    order = shop.an_order(service)
    for user in (shop.a_user(service)["id"], "nobody"):
        body = {"userId": user} if method == "PATCH" else {**order, "userId": user}
        reply = service.call(method, _path(order), body)
        assert (reply.status, shop.fields_of(reply.json)) == (422, {"userId"})
    assert _order(service, order) == order


def test_a_shipping_address_is_one_of_the_users(service: Service) -> None:
    """Another's, an unknown or a removed address is 422, in a new order and in a changed one."""
    user, stranger, product = shop.a_user(service), shop.a_user(service), shop.a_product(service)
    gone = shop.an_address(service, user)
    service.call("DELETE", f"/v1/users/{user['id']}/addresses/{gone['id']}")
    order = shop.an_order(service, (product, 1), user=user)
    for bad in (shop.an_address(service, stranger)["id"], "nowhere", "", gone["id"]):
        body = shop.order_body(user, (product, 1), shippingAddressId=bad)
        for method, path, sent in (
            ("POST", "/v1/orders", body),
            ("PATCH", _path(order), {"shippingAddressId": bad}),
            ("PUT", _path(order), {**order, "shippingAddressId": bad}),
        ):
            reply = service.call(method, path, sent)
            assert (reply.status, shop.fields_of(reply.json)) == (422, {"shippingAddressId"})
    assert shop.stock_of(service, product) == 99


def test_the_address_of_an_order_is_a_snapshot(service: Service) -> None:
    """The order keeps the address as it was when it was chosen, though it is changed or removed later."""
    user = shop.a_user(service)
    address = shop.an_address(service, user, line2="Flat 1")
    at = f"/v1/users/{user['id']}/addresses/{address['id']}"
    order = shop.an_order(service, user=user, shippingAddressId=address["id"])
    assert order["shippingAddressId"] == address["id"]
    assert {name: order["shippingAddress"][name] for name in address} == address
    service.call("PATCH", at, {"city": "York"})
    assert _order(service, order)["shippingAddress"]["city"] == "Leeds"
    service.call("DELETE", at)
    now = _order(service, order)
    assert (now["shippingAddress"], now["shippingAddressId"]) == (order["shippingAddress"], address["id"])
    assert service.call("PUT", _path(order), now).json == now
    assert (
        service.call("PATCH", _path(order), {"status": "FULFILLED"}).json["shippingAddress"]["city"]
        == "Leeds"
    )


def test_choosing_an_address_later_takes_its_snapshot_then(service: Service) -> None:
    """An address can be chosen, changed for another and removed while the order is PENDING."""
    user = shop.a_user(service)
    one, other = shop.an_address(service, user), shop.an_address(service, user, city="York")
    order = shop.an_order(service, user=user)
    assert (order["shippingAddressId"], order["shippingAddress"]) == (None, None)
    for chosen, city in ((one, "Leeds"), (other, "York")):
        reply = service.call("PATCH", _path(order), {"shippingAddressId": chosen["id"]})
        assert (reply.json["shippingAddress"]["city"], reply.json["shippingAddressId"]) == (
            city,
            chosen["id"],
        )
    removed = service.call("PATCH", _path(order), {"shippingAddressId": None}).json
    assert (removed["shippingAddressId"], removed["shippingAddress"]) == (None, None)


def test_what_a_deleted_user_ordered_stays(service: Service) -> None:
    """A deleted user is hidden, their email is free; their orders and snapshots stay and can be ended."""
    user = shop.a_user(service)
    address = shop.an_address(service, user)
    order = shop.an_order(service, user=user, shippingAddressId=address["id"])
    assert service.call("DELETE", f"/v1/users/{user['id']}").status == 204
    for path in ("", "/addresses", f"/addresses/{address['id']}"):
        assert service.get(f"/v1/users/{user['id']}{path}").status == 404
    assert service.call("DELETE", f"/v1/users/{user['id']}").status == 404
    assert service.call("PATCH", f"/v1/users/{user['id']}", {"name": "Eve"}).status == 404
    assert shop.a_user(service, email=user["email"])["id"] != user["id"]
    assert _order(service, order) == order
    assert service.call("PATCH", _path(order), {"status": "CANCELLED"}).status == 200


def test_a_deleted_product_is_hidden_and_its_sku_free(service: Service) -> None:
    """A deleted product is 404, its sku can be used again, and lines keep their snapshots of it."""
    product = shop.a_product(service, name="Lantern")
    order = shop.an_order(service, (product, 1))
    path = f"/v1/products/{product['id']}"
    assert service.call("DELETE", path).status == 204
    for method, body in (("GET", None), ("PUT", shop.product_body()), ("PATCH", {}), ("DELETE", None)):
        assert service.call(method, path, body).status == 404
    assert shop.a_product(service, sku=product["sku"])["id"] != product["id"]
    assert _order(service, order)["lineItems"][0]["name"] == "Lantern"


def test_an_order_outlives_the_deactivation_of_its_user(service: Service) -> None:
    """What an active user ordered can be ended after they were deactivated; a new order cannot be placed."""
    user, product = shop.a_user(service), shop.a_product(service)
    order = shop.an_order(service, (product, 1), user=user)
    service.call("PATCH", f"/v1/users/{user['id']}", {"status": "DEACTIVATED"})
    assert service.post("/v1/orders", shop.order_body(user, (product, 1))).status == 422
    assert service.call("PATCH", _path(order), {"status": "FULFILLED"}).status == 200
    service.call("PATCH", f"/v1/users/{user['id']}", {"status": "ACTIVE"})
    assert shop.an_order(service, (product, 1), user=user)["status"] == "PENDING"


# --- at once ---


def _statuses(service: Service, *requests: tuple[Any, ...]) -> Counter[int]:
    return Counter(reply.status for reply in service.calls(*requests))


def test_fifty_buyers_for_ten_pieces_are_ten_orders(service: Service) -> None:
    """Fifty buyers at once for ten pieces: exactly ten orders, stock 0, the others are told that it is short."""
    product = shop.a_product(service, stock=10)
    users = [shop.a_user(service) for _ in range(50)]
    replies = service.calls(*[("POST", "/v1/orders", shop.order_body(user, (product, 1))) for user in users])
    assert Counter(reply.status for reply in replies) == {201: 10, 422: 40}
    assert {e["code"] for reply in replies if reply.status == 422 for e in reply.json["errors"]} == {
        "insufficient_stock"
    }
    assert shop.stock_of(service, product) == 0
    assert len(shop.walked(service, f"/v1/line-items?productId={product['id']}")) == 10


def test_changes_of_many_orders_at_once_share_the_stock(service: Service) -> None:
    """Lines added and changed in many orders at once never take more than there is, and take all there is."""
    product, other = shop.a_product(service, stock=28), shop.a_product(service)
    orders = [shop.an_order(service, (product, 1), (other, 1)) for _ in range(18)]
    assert shop.stock_of(service, product) == 10
    line = {"productId": product["id"], "quantity": 1}
    requests: list[tuple[Any, ...]] = []
    for order in orders[::3]:
        requests.append(("POST", f"{_path(order)}/line-items", line))
    for order in orders[1::3]:
        requests.append(("PATCH", f"/v1/line-items/{order['lineItems'][0]['id']}", {"quantity": 2}))
    for order in orders[2::3]:
        requests.append(("PATCH", _path(order), {"lineItems": [*order["lineItems"], line]}))
    statuses = _statuses(service, *requests)
    assert statuses[422] == 8
    assert statuses[200] + statuses[201] == 10
    assert shop.stock_of(service, product) == 0
    lines = shop.walked(service, f"/v1/line-items?productId={product['id']}")
    assert sum(each["quantity"] for each in lines) == 28


def test_buyers_at_several_processes_share_the_stock(engine: str, new_database: Callable[[str], str]) -> None:
    """The same holds for buyers at three services on one database."""
    url = new_database(engine)
    services = [Service(url) for _ in range(3)]
    try:
        product, user = shop.a_product(services[0], stock=10), shop.a_user(services[0])
        body = shop.order_body(user, (product, 1), (product, 1))
        running = [each.begin(each._call("POST", "/v1/orders", body, "", {})) for each in services * 10]
        assert Counter(each.result(60).status for each in running) == {201: 5, 422: 25}
        assert [shop.stock_of(each, product) for each in services] == [0, 0, 0]
    finally:
        for each in services:
            each.stop()


def test_orders_that_cross_do_not_meet(service: Service) -> None:
    """Orders at once that name the same products in different orders are all placed."""
    goods = [shop.a_product(service, stock=1000) for _ in range(4)]
    user = shop.a_user(service)
    turns = [goods[i:] + goods[:i] for i in range(4)] + [goods[::-1]]
    requests = [
        ("POST", "/v1/orders", shop.order_body(user, *[(each, 1) for each in turn])) for turn in turns * 8
    ]
    assert _statuses(service, *requests) == {201: 40}
    assert [shop.stock_of(service, each) for each in goods] == [960] * 4


def test_many_cancellations_at_once_give_back_once(service: Service) -> None:
    """However many cancel and delete at once, the stock comes back once."""
    product = shop.a_product(service, stock=10)
    order, other = shop.an_order(service, (product, 4)), shop.an_order(service, (product, 3))
    assert _statuses(service, *[("PATCH", _path(order), {"status": "CANCELLED"})] * 12) == {200: 12}
    assert shop.stock_of(service, product) == 7
    assert _statuses(service, *[("DELETE", _path(other))] * 12) == {204: 1, 404: 11}
    assert shop.stock_of(service, product) == 10
    assert shop.told(service, f"orders/{order['id']}").count("order.cancelled") == 1
    assert shop.told(service, f"orders/{other['id']}").count("order.deleted") == 1


def test_an_order_is_fulfilled_or_cancelled_never_both(service: Service) -> None:
    """Of a fulfilment and a cancellation at once one is done; stock and events agree with which."""
    product = shop.a_product(service, stock=100)
    orders = [shop.an_order(service, (product, 1)) for _ in range(10)]
    moves = [("PATCH", _path(order), {"status": state}) for order in orders for state in STATES[1:]]
    assert _statuses(service, *moves) == {200: 10, 422: 10}
    ends = [_order(service, order)["status"] for order in orders]
    assert shop.stock_of(service, product) == 90 + ends.count("CANCELLED")
    for order, end in zip(orders, ends, strict=True):
        assert shop.told(service, f"orders/{order['id']}") == ["order.placed", f"order.{end.lower()}"]


def test_lines_changed_at_once_keep_total_and_stock_right(service: Service) -> None:
    """Lines added, changed, removed and replaced at once: what was answered is what is there, and all adds up."""
    product = shop.a_product(service, stock=1000)
    order = shop.an_order(service, *[(product, 1)] * 6)
    below = f"{_path(order)}/line-items"
    requests: list[tuple[Any, ...]] = []
    for n, line in enumerate(order["lineItems"]):
        requests += [
            ("POST", below, {"productId": product["id"], "quantity": n + 1}),
            ("PATCH", f"/v1/line-items/{line['id']}", {"quantity": n + 2}),
            ("PATCH", f"{below}/{line['id']}", {"quantity": n + 3}),
            ("DELETE", f"/v1/line-items/{line['id']}"),
            (
                "PATCH",
                _path(order),
                {"lineItems": [*order["lineItems"], {"productId": product["id"], "quantity": 2}]},
            ),
        ]
    replies = service.calls(*requests)
    assert {reply.status for reply in replies} <= {200, 201, 204, 404, 409, 422}
    now = _order(service, order)
    held = sum(line["quantity"] for line in now["lineItems"])
    assert shop.stock_of(service, product) == 1000 - held


def test_changes_at_both_addresses_at_once_are_all_done(service: Service) -> None:
    """An order replaced and its lines changed at once wait for each other in one order: all succeed, none is lost."""
    product = shop.a_product(service, stock=1000)
    order = shop.an_order(service, *[(product, 1)] * 4)
    requests: list[tuple[Any, ...]] = []
    for quantity in range(2, 7):
        replaced = [{**line, "quantity": quantity} for line in order["lineItems"]]
        for line in order["lineItems"]:
            requests.append(("PATCH", f"/v1/line-items/{line['id']}", {"quantity": quantity}))
            requests.append(("PATCH", _path(order), {"lineItems": replaced}))
    assert _statuses(service, *requests) == {200: len(requests)}
    held = sum(line["quantity"] for line in _order(service, order)["lineItems"])
    assert shop.stock_of(service, product) == 1000 - held


def test_two_last_lines_removed_at_once_leave_one(service: Service) -> None:
    """Each of two removals at once would leave a line; both together must too."""
    for _ in range(5):
        order = shop.an_order(service, (shop.a_product(service), 1), (shop.a_product(service), 1))
        removals = [("DELETE", f"/v1/line-items/{line['id']}") for line in order["lineItems"]]
        assert _statuses(service, *removals) == {204: 1, 422: 1}
        assert len(_order(service, order)["lineItems"]) == 1


def test_one_of_many_takes_an_email(service: Service) -> None:
    """Of many that want one email at once, in whatever case, one gets it and the others are 409."""
    email = f"{shop.unique()}@shop.example"
    spelled = [email, email.upper(), email.title()] * 4
    requests = [("POST", "/v1/users", shop.user_body(email=each)) for each in spelled]
    assert _statuses(service, *requests) == {201: 1, 409: 11}


def test_deletes_at_once_delete_once(service: Service) -> None:
    """DELETE of what is already gone is 404, however close the two came."""
    user = shop.a_user(service)
    assert _statuses(service, *[("DELETE", f"/v1/users/{user['id']}")] * 8) == {204: 1, 404: 7}
    assert shop.told(service, f"users/{user['id']}") == ["user.created", "user.deleted"]
