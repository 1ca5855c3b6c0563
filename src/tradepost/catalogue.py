"""The whole API on one page. A new resource without rules takes a record, a migration and one line here."""

from tradepost.actions.addresses import Addresses
from tradepost.actions.api_keys import ApiKeys
from tradepost.actions.line_items import LineItems
from tradepost.actions.orders import Orders
from tradepost.actions.standard import StandardActions
from tradepost.actions.users import Users
from tradepost.actions.webhook_deliveries import WebhookDeliveries
from tradepost.actions.webhook_endpoints import WebhookEndpoints
from tradepost.actions.webhook_redeliveries import WebhookRedeliveries
from tradepost.actions.webhook_secrets import WebhookSecrets
from tradepost.domain.address import Address
from tradepost.domain.api_key import ApiKey
from tradepost.domain.event import Event
from tradepost.domain.line_item import LineItem
from tradepost.domain.order import Order
from tradepost.domain.product import Product
from tradepost.domain.user import User
from tradepost.domain.webhook_delivery import WebhookDelivery
from tradepost.domain.webhook_endpoint import WebhookEndpoint
from tradepost.domain.webhook_redelivery import WebhookRedelivery
from tradepost.domain.webhook_secret import WebhookSecret
from tradepost.events.event_type import PING, EventType
from tradepost.resource import READ, Resource

RESOURCES: tuple[Resource, ...] = (
    Resource(User, Users(), "users", user_keys="own"),
    Resource(Address, Addresses(), "users", user_keys="own", under="user_id", top=False),
    Resource(Product, StandardActions(Product, emits=True), "products", user_keys="read"),
    Resource(Order, Orders(), "orders", user_keys="own"),
    Resource(LineItem, LineItems(), "orders", user_keys="own", under="order_id"),
    Resource(Event, None, "events:read", methods=READ, revisable=False),
    Resource(WebhookEndpoint, WebhookEndpoints(), "webhooks"),
    Resource(
        WebhookSecret,
        WebhookSecrets(),
        "webhooks",
        methods=("GET", "POST", "DELETE"),
        under="endpoint_id",
        called=("secret", "secrets"),
        top=False,
        revisable=False,
    ),
    Resource(
        WebhookDelivery,
        WebhookDeliveries(),
        "webhooks",
        methods=("GET", "POST"),
        revisable=False,
        alternative=WebhookRedelivery,
    ),
    Resource(WebhookRedelivery, WebhookRedeliveries(), "webhooks", methods=("GET", "POST"), revisable=False),
    Resource(ApiKey, ApiKeys(), "keys:write", methods=("GET", "POST", "DELETE"), revisable=False),
)


def event_types(resources: tuple[Resource, ...] = RESOURCES) -> dict[str, EventType]:
    """The event types by name: those that the resources announce, and the ping."""
    names = [name for each in resources if each.actions for name in each.actions.events]
    return {name: EventType(name) for name in [*dict.fromkeys(names), PING]}
