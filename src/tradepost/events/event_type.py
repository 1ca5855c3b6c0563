"""Event types: a name under the service's prefix, and the schema of its data.

A breaking change of a schema is a new type with a suffix (`order.placed.v2`), emitted together with the old
one while receivers move over.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

SCHEMA = "https://json-schema.org/draft/2020-12/schema"
PING = "webhook.ping"
EVERY = "*"

_DESCRIPTIONS = {
    PING: "Nothing happened: a webhook endpoint is being tried.",
    "user.updated": "A user was changed, or one of its addresses.",
    "order.updated": "The line items or the shipping address of an order were changed.",
}


@dataclass(frozen=True)
class EventType:
    """A type of event; `versions` are the schema versions emitted in parallel."""

    name: str
    versions: tuple[int, ...] = (1,)

    @cached_property
    def names(self) -> tuple[tuple[str, int], ...]:
        """The names to emit, with their versions: (`order.placed`, 1), (`order.placed.v2`, 2)."""
        return tuple((self.name if n == 1 else f"{self.name}.v{n}", n) for n in self.versions)

    @property
    def description(self) -> str:
        """What it announces, as a sentence: for `order.placed`, that an order was placed."""
        kind, verb = self.name.replace("_", " ").rsplit(".", 1)
        return _DESCRIPTIONS.get(self.name, f"{'An' if kind[0] in 'aeio' else 'A'} {kind} was {verb}.")


@cache
def family(name: str) -> str:
    """The pattern of all types of an entity: `order.*` for `order.placed` and for `order.placed.v2`."""
    return f"{name.partition('.')[0]}.*"


def data_schema(full_name: str, version: int, url: str) -> dict[str, Any]:
    """The JSON Schema of an event's `data`: identifiers, never the state of the entity."""
    return {
        "$schema": SCHEMA,
        "$id": url,
        "title": full_name,
        "description": "Announces that something happened; fetch the entity for its present state.",
        "type": "object",
        "required": ["entityType", "entityId", "eventType", "timestamp", "schemaVersion"],
        "properties": {
            "entityType": {"type": "string", "const": full_name.split(".")[-3 if version > 1 else -2]},
            "entityId": {"type": "string", "format": "uuid"},
            "eventType": {"type": "string", "const": full_name},
            "timestamp": {"type": "string", "format": "date-time"},
            "schemaVersion": {"type": "string", "const": str(version)},
        },
    }
