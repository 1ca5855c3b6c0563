"""The catalogue of event types, each with its description and the JSON Schema of its data."""

from collections.abc import Mapping
from typing import Any

from tradepost.events.event_type import EventType, data_schema

Json = dict[str, Any]


def catalogue(types: Mapping[str, EventType], prefix: str, base_url: str) -> list[Json]:
    """All emitted types by their full names; each version of a type is an entry."""
    return [
        _entry(f"{prefix}.{name}", version, each.description, base_url)
        for each in types.values()
        for name, version in each.names
    ]


def _entry(full: str, version: int, description: str, base_url: str) -> Json:
    url = f"{base_url}/event-types/{full}"
    return {
        "type": full,
        "description": description,
        "schemaVersion": str(version),
        "dataschema": url,
        "schema": data_schema(full, version, url),
    }
