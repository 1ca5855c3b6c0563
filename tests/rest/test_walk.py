"""A first order, from nothing to fulfilled."""

from tests.service import Service


def test_an_order_is_placed_and_fulfilled(service: Service) -> None:
    """A user orders a product, and the order is fulfilled."""
    user = service.made("/v1/users", {"name": "Ada", "email": "ada@walk.example"})
    product = service.made(
        "/v1/products", {"sku": "walk", "name": "Lantern", "price": 19.99, "currency": "GBP", "stock": 3}
    )
    order = service.made(
        "/v1/orders", {"userId": user["id"], "lineItems": [{"productId": product["id"], "quantity": 2}]}
    )
    assert order["total"] == 39.98
    assert service.get(f"/v1/products/{product['id']}").json["stock"] == 1
    done = service.call("PATCH", f"/v1/orders/{order['id']}", {"status": "FULFILLED"})
    assert (done.status, done.json["status"]) == (200, "FULFILLED")
