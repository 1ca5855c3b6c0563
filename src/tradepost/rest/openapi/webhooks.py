"""The webhooks in the document: the request that a receiver gets for each type of event."""

from collections.abc import Sequence

from tradepost.domain.event import Event
from tradepost.domain.webhook_endpoint import WebhookEndpoint
from tradepost.events.event_type import EventType
from tradepost.rest.openapi.examples import Examples, named
from tradepost.rest.openapi.schemas import Json, Schemas
from tradepost.rest.openapi.words import duration, heading, pascal
from tradepost.settings import Settings

_TYPES = ("application/cloudevents+json", "application/json")


def _header(name: str, description: str, pattern: str, example: str) -> Json:
    schema = {"type": "string", "pattern": pattern}
    return {
        "name": name,
        "in": "header",
        "required": True,
        "description": description,
        "schema": schema,
        "example": example,
    }


PARAMETERS: dict[str, Json] = {
    "Signature": _header(
        "X-Signature-256",
        "HMAC-SHA256 of the exact bytes of the body; the key is the whole text of the endpoint's secret. "
        "Compare in constant time; during a rotation, one of the two secrets matches.",
        "^sha256=[0-9a-f]{64}$",
        "sha256=" + "5d1c04b7" * 8,
    ),
    "WebhookId": _header(
        "webhook-id",
        "Id of the event, the same in every attempt (Standard Webhooks).",
        "^.+$",
        "019aa0c1-8d2e-7ba5-8f1c-6b2f8a3d9c10",
    ),
    "WebhookTimestamp": _header(
        "webhook-timestamp",
        "When this attempt was signed, in seconds since 1970 (Standard Webhooks).",
        "^[0-9]+$",
        "1795162530",
    ),
    "WebhookSignature": _header(
        "webhook-signature",
        "HMAC-SHA256 of `id.timestamp.body`; the key is the decoded base64 part of the secret (Standard "
        "Webhooks).",
        "^v1,[A-Za-z0-9+/]{43}=$",
        "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
    ),
}
_SIGNED_AT: Json = {
    "type": "string",
    "format": "date-time",
    "description": "When this attempt was signed. Reject requests that are more than five minutes old.",
}


def attempt_number(settings: Settings) -> Json:
    """The schema of an attempt's number, which depends on the retry schedule."""
    retries = len(settings.webhook_schedule)
    others = f"1 to {retries} are retries" if retries > 1 else "1 is the retry"
    return {"maximum": retries, "description": f"0 is the first attempt; {others}."}


def webhooks(event_types: Sequence[str], schemas: Schemas, examples: Examples, settings: Settings) -> Json:
    """The requests by event type; none if the API has no webhook endpoints."""
    if not {Event, WebhookEndpoint} <= schemas.shapes.keys():
        return {}
    return {each: {"post": _received(each, schemas, examples, settings)} for each in event_types}


def _received(event_type: str, schemas: Schemas, examples: Examples, settings: Settings) -> Json:
    kind, verb, version = named(event_type)
    suffix = "" if version == "1" else f"V{version}"
    event = schemas.shapes[Event]
    number = {"type": "integer", "minimum": 0, **attempt_number(settings)}
    schema = {
        **schemas.delivered(event, {"signedat": _SIGNED_AT, "attempt": number}),
        "properties": {event.names["type"]: {"const": event_type}},
    }
    media = {"schema": schema, "example": examples.delivered(event, event_type)}
    return {
        "operationId": f"receive{pascal(kind)}{verb.title()}{suffix}",
        "summary": EventType(f"{kind}.{verb}").description,
        "description": "Verify the signature first, then deduplicate on `id`: an event can arrive more than "
        "once, and out of order.",
        "tags": [heading(WebhookEndpoint)],
        "security": [],
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in PARAMETERS],
        "requestBody": {"required": True, "content": dict.fromkeys(_TYPES, media)},
        "responses": _responses(settings),
    }


def _responses(settings: Settings) -> Json:
    timeout = f"{settings.webhook_timeout:g} second{'' if settings.webhook_timeout == 1 else 's'}"
    *earlier, last = map(duration, settings.webhook_schedule)
    delays = f"{', '.join(earlier)} and {last}" if earlier else last
    success = f"Any 2xx response within {timeout} acknowledges the event."
    failure = (
        "After any other response, including a redirect, or none in time, the event is sent again "
        f"{delays} after the previous failure; then the delivery is abandoned."
    )
    return {"2XX": {"description": success}, "default": {"description": failure}}
