"""Webhook endpoints as tests need them, and what is queued for them."""

from typing import Any

from tests import shop
from tests.service import Service
from tests.shop import unique

ENDPOINTS = "/v1/webhook-endpoints"
DELIVERIES = "/v1/webhook-deliveries"
REDELIVERIES = "/v1/webhook-redeliveries"


# A public address: it needs no look-up, and nothing is sent to it while no worker runs.
URL = "https://1.1.1.1/hook"


def body(**members: Any) -> dict[str, Any]:
    return {"url": f"{URL}/{unique()}", **members}


def an_endpoint(service: Service, *event_types: str, **members: Any) -> Any:
    """An endpoint of these types of events; of all where none are given."""
    wanted = {"eventTypes": list(event_types)} if event_types else {}
    return service.made(ENDPOINTS, body(**wanted, **members))


def at(endpoint: Any) -> str:
    """The path of an endpoint."""
    return f"{ENDPOINTS}/{endpoint['id']}"


def secrets_of(service: Service, endpoint: Any) -> dict[str, str]:
    """The secrets of an endpoint: the status of each by its id."""
    return {each["id"]: each["status"] for each in shop.walked(service, f"{at(endpoint)}/secrets")}


def queued(service: Service, endpoint: Any) -> list[Any]:
    """The deliveries to an endpoint, in the order they were queued."""
    return shop.walked(service, f"{DELIVERIES}?endpointId={endpoint['id']}")


def heard(service: Service, endpoint: Any) -> list[str]:
    """The types of what is queued for an endpoint, without their prefix."""
    return [each["eventType"].removeprefix("dev.tradepost.") for each in queued(service, endpoint)]
