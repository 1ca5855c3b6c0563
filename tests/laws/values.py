"""Valid bodies for every resource, and for every member a value that differs from its default and from others."""

import itertools
from collections.abc import Callable
from typing import Any

from tests import shop
from tests.rest import hooks
from tests.service import Service
from tradepost.domain.record import Mark, Member, Record

_numbers = itertools.count(1)
_TEXTS = {"email": "a{}@shop.example", "country": "FR", "url": f"{hooks.URL}/{{}}"}
_LISTS = {"scopes": ["orders:read", "users:read"], "event_types": ["order.*", "user.created"]}


class World:
    """What bodies refer to: a user with an address, products, an order and a webhook endpoint."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.user, self.product = shop.a_user(service), shop.a_product(service, stock=None)
        self.address = shop.an_address(service, self.user)
        self.order = shop.an_order(service, (self.product, 1), user=self.user)
        self.endpoint = service.made("/v1/webhook-endpoints", {"url": hooks.URL})
        self.event = shop.events_of(service, f"orders/{self.order['id']}")[0]

    def path(self, record: type[Record]) -> str:
        """Where items of a record are created."""
        if record.kind == "address":
            return f"/v1/users/{self.user['id']}/addresses"
        return f"/v1/{record.plural.replace('_', '-')}"

    def body(self, record: type[Record]) -> dict[str, Any]:
        """A body with the members that are required."""
        line = {"productId": self.product["id"], "quantity": 1}
        bodies: dict[str, Callable[[], dict[str, Any]]] = {
            "user": shop.user_body,
            "address": shop.address_body,
            "product": lambda: shop.product_body(stock=None),
            "order": lambda: shop.order_body(self.user, (self.product, 1)),
            "line_item": lambda: {**line, "orderId": self.order["id"]},
            "api_key": lambda: {"name": "n", "scopes": ["users:read"]},
            "webhook_endpoint": lambda: {"url": hooks.URL},
            "webhook_delivery": lambda: {"endpointId": self.endpoint["id"]},
            "webhook_redelivery": lambda: {"endpointId": self.endpoint["id"], "from": "2020-01-01"},
        }
        return bodies[record.kind]()

    def value(self, member: Member) -> Any:  # noqa: PLR0911 (a table)
        """A valid value of a member, as JSON."""
        number = next(_numbers)
        if member.name.endswith("_id"):
            return self._id(member)
        if member.values:
            return next(value for value in reversed(member.values) if value != member.default)
        if Mark.MONEY in member.marks:
            return number + 0.25
        if member.is_integer:
            return number % 1000 + 2
        if member.is_instant:
            year = 2025 if member.name in ("from_", "to") else 2031
            return f"{year}-02-03T04:05:06.{number % 1000:03}Z"
        if member.name == "currency":
            return "EUR"
        if Mark.JSON in member.marks:
            return _LISTS[member.name]
        return _TEXTS.get(member.name, "Text {}").format(number)

    def _id(self, member: Member) -> str:
        ids: dict[str, Callable[[], Any]] = {
            "user_id": lambda: self.user["id"],
            "product_id": lambda: shop.a_product(self.service)["id"],
            "order_id": lambda: shop.an_order(self.service)["id"],
            "shipping_address_id": lambda: self.address["id"],
            "endpoint_id": lambda: self.service.made("/v1/webhook-endpoints", {"url": hooks.URL})["id"],
            "event_id": lambda: self.event["id"],
        }
        found: str = ids[member.name]()
        return found
