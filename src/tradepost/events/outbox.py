"""The outbox: events are rows, written in the transaction of what they announce.

A crash at any moment leaves both or neither; whoever delivers them reads committed rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from tradepost.events.event_type import EventType
from tradepost.storage.database import Writing
from tradepost.storage.statements import events

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


async def append(
    tx: Writing,
    emitter: Emitter,
    happened: Sequence[Happened],
    source: str,
    now: str,
    traceparent: str | None,
) -> None:
    """Writes what happened to the log; `source` is the address of the service."""
    rows = [row for each in happened for row in _rows(emitter, each, source, now, traceparent)]
    if len(rows) == 1:
        await tx.run(events.APPEND, **rows[0])
    elif rows:
        await tx.many(events.APPEND, rows)


def _rows(
    emitter: Emitter, each: Happened, source: str, now: str, traceparent: str | None
) -> list[dict[str, str | None]]:
    rows: list[dict[str, str | None]] = []
    for name, version in emitter.types[each.type].names():
        full = f"{emitter.prefix}.{name}"
        data = _Data(each.type.partition(".")[0], each.entity_id, full, now, str(version))
        rows.append(
            {
                "id": each.id if version == 1 else f"{each.id}-v{version}",
                "source": source,
                "type": full,
                "subject": f"{each.plural}/{each.entity_id}",
                "time": now,
                "dataschema": f"{source}/event-types/{full}",
                "data": _encode(data).decode(),
                "traceparent": traceparent,
            }
        )
    return rows
