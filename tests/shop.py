"""What tests order, and from whom: each call makes something new, with values that no other test has."""

import json
from typing import Any
from uuid import uuid4

from tests.service import Service

MANY = 5_000  # more of anything than a test makes: whoever counts so far walks in circles


def unique(prefix: str = "x") -> str:
    """A value nobody else has; letters, digits and a hyphen."""
    return f"{prefix}-{uuid4().hex[:16]}"


def user_body(**members: Any) -> dict[str, Any]:
    return {"name": "Ada", "email": f"{unique('ada')}@shop.example", **members}


def address_body(**members: Any) -> dict[str, Any]:
    body = {
        "recipient": "Ada",
        "line1": "1 Mill Lane",
        "city": "Leeds",
        "postalCode": "LS1 1AA",
        "country": "GB",
    }
    return {**body, **members}


def product_body(**members: Any) -> dict[str, Any]:
    return {"sku": unique("sku"), "name": "Lantern", "price": 2.5, "currency": "GBP", "stock": 100, **members}


def order_body(user: Any, *lines: tuple[Any, int], **members: Any) -> dict[str, Any]:
    """An order of a user for (product, quantity) lines."""
    items = [{"productId": product["id"], "quantity": quantity} for product, quantity in lines]
    return {"userId": user["id"], "lineItems": items, **members}


def a_user(service: Service, **members: Any) -> Any:
    return service.made("/v1/users", user_body(**members))


def an_address(service: Service, user: Any, **members: Any) -> Any:
    return service.made(f"/v1/users/{user['id']}/addresses", address_body(**members))


def a_product(service: Service, **members: Any) -> Any:
    return service.made("/v1/products", product_body(**members))


def an_order(service: Service, *lines: tuple[Any, int], user: Any = None, **members: Any) -> Any:
    """An order; of a new user and a new product where none are given."""
    user = user or a_user(service)
    lines = lines or ((a_product(service), 1),)
    return service.made("/v1/orders", order_body(user, *lines, **members))


def get(service: Service, path: str, **headers: Any) -> Any:
    """What a GET shows; fails the test if there is nothing."""
    reply = service.get(path, **headers)
    assert reply.status == 200, reply
    return reply.json


def walked(service: Service, path: str, **headers: Any) -> list[Any]:
    """Every item of a list, page after page by the cursors given out."""
    found: list[Any] = []
    page = get(service, path, **headers)
    for _ in range(MANY):
        found += page["items"]
        if page["next"] is None:
            return found
        page = get(service, f"{path}{'&' if '?' in path else '?'}cursor={page['next']}", **headers)
    raise AssertionError(f"{path} has no end")


def events_of(service: Service, subject: str) -> list[Any]:
    """The events of an entity so far, in the order of the log.

    A log on PostgreSQL shows only what no running transaction can still come before; once it shows a later
    mark, it shows all before it.
    """
    mark = a_user(service)
    seen = (get(service, f"/v1/events?subject=users/{mark['id']}")["items"] for _ in range(MANY))
    assert next(filter(None, seen), None), "the log does not settle"
    return walked(service, f"/v1/events?subject={subject}")


def told(service: Service, subject: str) -> list[str]:
    """The types of an entity's events so far, without their prefix."""
    return [event["type"].removeprefix("dev.tradepost.") for event in events_of(service, subject)]


def stock_of(service: Service, product: Any) -> int | None:
    found: int | None = get(service, f"/v1/products/{product['id']}")["stock"]
    return found


def fields_of(problem: Any) -> set[str]:
    """The members that a problem names."""
    return {error["field"] for error in problem["errors"]}


def body_of(text: str) -> bytes:
    """A body as it stands, for what `json.dumps` would not write."""
    return text.encode()


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same, numbers by their value and `true` not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
