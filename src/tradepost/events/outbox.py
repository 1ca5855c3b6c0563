"""The outbox: events are rows, written in the transaction of what they announce, and so are their deliveries.

A crash at any moment leaves all or nothing; whoever delivers them reads committed rows.
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
    """What is emitted: the types there are, under their prefix."""

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


class _Written(msgspec.Struct):
    """An event as a row, and its name without the prefix."""

    name: str
    row: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Log:
    """What a transaction writes events with; `source` is the address of the service."""

    emitter: Emitter
    source: str
    now: str
    traceparent: str | None
    new_id: Callable[[], str]

    async def append(self, tx: Writing, happened: Sequence[Happened]) -> None:
        """Writes what happened to the log, and a delivery of it for each endpoint that wants to know."""
        written = [each for one in happened for each in self._written(one)]
        if len(written) == 1:
            queued = await self._append_one(tx, written[0])
        else:
            queued = await self._append_all(tx, written)
        if queued:
            await tx.many(webhook_deliveries.QUEUE, queued)

    async def _append_one(self, tx: Writing, one: _Written) -> list[dict[str, Any]]:
        names = {"every": EVERY, "family": family(one.name), "name": one.name}
        (told,) = await tx.rows(events.APPEND_ONE, **one.row, **names)
        return [self._delivery(one, each) for each in told[0].split(",")] if told[0] else []

    async def _append_all(self, tx: Writing, written: list[_Written]) -> list[dict[str, Any]]:
        await tx.many(events.APPEND, [each.row for each in written])
        patterns = {each for one in written for each in patterns_of(one.name)}
        told: dict[str, set[str]] = {}
        for pattern, endpoint_id in await tx.rows(webhook_endpoints.SUBSCRIPTIONS, patterns=sorted(patterns)):
            told.setdefault(pattern, set()).add(endpoint_id)
        return [self._delivery(one, each) for one in written for each in sorted(_told(one.name, told))]

    def _delivery(self, one: _Written, endpoint_id: str) -> dict[str, Any]:
        event_id, event_type = one.row["id"], one.row["type"]
        return delivery(self.new_id(), endpoint_id, self.now, event_id=event_id, event_type=event_type)

    def _written(self, each: Happened) -> Iterable[_Written]:
        for name, version in self.emitter.types[each.type].names():
            full = f"{self.emitter.prefix}.{name}"
            data = _Data(each.type.partition(".")[0], each.entity_id, full, self.now, str(version))
            event_id = each.id if version == 1 else f"{each.id}-v{version}"
            subject = f"{each.plural}/{each.entity_id}"
            row = _row(event_id, self.source, full, subject, self.now, data, self.traceparent)
            yield _Written(name, row)


def ping(emitter: Emitter, ping_id: str, endpoint_id: str, source: str, at: str) -> dict[str, Any]:
    """The event of a ping, which stands in no log."""
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


def _told(name: str, told: Mapping[str, set[str]]) -> set[str]:
    return {each for pattern in patterns_of(name) for each in told.get(pattern, ())}


def patterns_of(name: str) -> tuple[str, str, str]:
    """What an endpoint may name to be told of an event: `*`, `order.*`, `order.placed`."""
    return EVERY, family(name), name


def delivery(new_id: str, endpoint_id: str, now: str, **given: Any) -> dict[str, Any]:
    """The row of a delivery that is due at once: what is `given` beside what every new one is."""
    return {**_NEW, "id": new_id, "endpoint_id": endpoint_id, **_dates(now), **given}


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


def _dates(now: str) -> dict[str, str]:
    return {"next_attempt_at": now, "created_at": now, "updated_at": now}
