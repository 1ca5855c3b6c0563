"""The outbox: events and their deliveries are rows, written in the transaction of what they announce.

A crash at any moment leaves all of it or nothing; deliveries are made of committed rows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tradepost.events.event_type import EVERY, PING, EventType, family
from tradepost.storage.database import Writing
from tradepost.storage.statements import events, webhook_deliveries, webhook_endpoints

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Emitter:
    """The types of events that can be emitted, and the prefix of their names."""

    prefix: str
    types: Mapping[str, EventType]


@dataclass(frozen=True, slots=True)
class Happened:
    """One thing that happened in a transaction: `order.placed` to `orders/<id>`."""

    id: str
    type: str
    plural: str
    entity_id: str


class _Data(msgspec.Struct, rename="camel"):
    entity_type: str
    entity_id: str
    event_type: str
    timestamp: str
    schema_version: str


class _NamedRow(msgspec.Struct):
    """The row of an event, and the name of its type without the prefix."""

    name: str
    row: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outbox:
    """Writes the events of one transaction at `now_at`; `source` is the address of the service."""

    emitter: Emitter
    source: str
    now_at: str
    traceparent: str | None
    new_id: Callable[[], str]

    async def append(self, tx: Writing, happened: Sequence[Happened]) -> None:
        """Appends what happened to the log and queues a delivery for each endpoint that subscribes to it.

        Raises KeyError if the emitter has no such type.
        """
        rows = [row for each in happened for row in self._rows(each)]
        deliveries = await (self._append_one(tx, rows[0]) if len(rows) == 1 else self._append_all(tx, rows))
        if deliveries:
            await tx.many(webhook_deliveries.QUEUE, deliveries)

    async def _append_one(self, tx: Writing, one: _NamedRow) -> list[dict[str, Any]]:
        patterns = {"every": EVERY, "family": family(one.name), "name": one.name}
        [[endpoint_ids]] = await tx.rows(events.APPEND_ONE, **one.row, **patterns)
        return [self._delivery(one, each) for each in endpoint_ids.split(",")] if endpoint_ids else []

    async def _append_all(self, tx: Writing, rows: list[_NamedRow]) -> list[dict[str, Any]]:
        await tx.many(events.APPEND, [each.row for each in rows])
        patterns = sorted({pattern for each in rows for pattern in patterns_of(each.name)})
        by_pattern: dict[str, set[str]] = {}
        for pattern, endpoint_id in await tx.rows(webhook_endpoints.SUBSCRIPTIONS, patterns=patterns):
            by_pattern.setdefault(pattern, set()).add(endpoint_id)
        return [self._delivery(one, each) for one in rows for each in _subscribers(one.name, by_pattern)]

    def _delivery(self, one: _NamedRow, endpoint_id: str) -> dict[str, Any]:
        event_id, event_type = one.row["id"], one.row["type"]
        return delivery(self.new_id(), endpoint_id, self.now_at, event_id=event_id, event_type=event_type)

    def _rows(self, each: Happened) -> Iterable[_NamedRow]:
        for name, version in self.emitter.types[each.type].names:
            full = f"{self.emitter.prefix}.{name}"
            data = _Data(each.type.partition(".")[0], each.entity_id, full, self.now_at, str(version))
            event_id = each.id if version == 1 else f"{each.id}-v{version}"
            subject = f"{each.plural}/{each.entity_id}"
            row = _row(event_id, self.source, full, subject, self.now_at, data, self.traceparent)
            yield _NamedRow(name, row)


def ping(emitter: Emitter, ping_id: str, endpoint_id: str, source: str, at: str) -> dict[str, Any]:
    """The event of a ping, which is not in the log; `at` is an instant."""
    full = f"{emitter.prefix}.{PING}"
    data = _Data(PING.partition(".")[0], endpoint_id, full, at, "1")
    return _row(ping_id, source, full, f"webhook-endpoints/{endpoint_id}", at, data, None)


def _row(
    event_id: str, source: str, full: str, subject: str, at: str, data: _Data, traceparent: str | None
) -> dict[str, Any]:
    return {
        "id": event_id,
        "source": source,
        "type": full,
        "subject": subject,
        "time": at,
        "dataschema": f"{source}/event-types/{full}",
        "data": _encode(data).decode(),
        "traceparent": traceparent,
    }


def _subscribers(name: str, by_pattern: Mapping[str, set[str]]) -> list[str]:
    return sorted({each for pattern in patterns_of(name) for each in by_pattern.get(pattern, ())})


def patterns_of(name: str) -> tuple[str, str, str]:
    """The patterns by which an endpoint may subscribe to a type: `*`, `order.*`, `order.placed`."""
    return EVERY, family(name), name


def delivery(new_id: str, endpoint_id: str, now_at: str, **columns: Any) -> dict[str, Any]:
    """The row of a new delivery that is due at once; `columns` come on top of the defaults."""
    instants = dict.fromkeys(("next_attempt_at", "created_at", "updated_at"), now_at)
    return {**_NEW, "id": new_id, "endpoint_id": endpoint_id, **instants, **columns}


_NEW: dict[str, Any] = {
    "event_id": None,
    "status": "PENDING",
    "attempts": "[]",
    "redelivery_id": None,
    "version": 1,
    "attempt": 0,
    "later": 0,
    "lease": None,
    "leased_until": None,
    "source": None,
}
