"""Examples: realistic values for every member, so that each schema and each problem has an example.

A member that is not in the table gets a value of its type, so that new records have valid examples too.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import NODEFAULT

from tradepost.domain.input import Input, names_of
from tradepost.domain.record import Mark, Member, Record, members
from tradepost.http.answers import status_of
from tradepost.problems import Problem
from tradepost.rest.openapi.schemas import Json, typed
from tradepost.rest.shape import Shape

_TEXT = Path(__file__).with_name("examples.json").read_text("utf-8")
_MOMENT = "2026-11-20T08:15:30.123Z"
_TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def sample_id(kind: str) -> str:
    """An id for a kind of record: always the same, so that examples refer to one another."""
    digits = hashlib.sha256(kind.encode()).hexdigest()
    return f"019aa0c1-8d2e-7{digits[:3]}-8{digits[3:6]}-{digits[6:18]}"


# Values of members and of what a new item has instead, secrets, and problems. In them `{order}` is an id.
_DATA: Json = msgspec.json.decode(re.sub(r"\{(\w+)\}", lambda kind: sample_id(kind[1]), _TEXT))


class Examples:
    """The examples of one version. `event_type` is the full type of the example event."""

    def __init__(self, shapes: Mapping[type[Record], Shape], base_url: str, event_type: str) -> None:
        self._shapes = shapes
        self._base_url = base_url
        self._event_type = event_type

    def item(self, shape: Shape) -> Json:
        """An item in a response."""
        return self._shown(shape.record, shape.names)

    def page(self, shape: Shape) -> Json:
        """The last page of a list."""
        return {"items": [self.item(shape)], "next": None}

    def created(self, shape: Shape) -> Json:
        """A new item, with its secrets."""
        secrets = shape.resource.actions.reveals if shape.resource.actions else {}
        new = {shape.names[name]: value for name, value in _DATA["new"].get(shape.record.kind, {}).items()}
        return (
            self.item(shape) | new | {name: _DATA["secrets"].get(name, "shown-this-once") for name in secrets}
        )

    def body(self, shape: Shape, *, under: bool) -> Json:
        """The body that would create the item: the required members, and those not at their defaults."""
        return self._written(shape.input(under=under))

    def patch(self, shape: Shape, *, under: bool) -> Json:
        """A change of one member."""
        taken = shape.input(under=under, patching=True)
        changed = _changed(taken.taken)
        return {taken.names[changed.name]: self._another(shape.record, changed)} if changed else {}

    def value(self, record: type[Record], each: Member) -> Any:
        """A value of a member."""
        known = self._event() if record.is_log else _DATA["members"].get(record.kind, {})
        known = {"event_type": self._event_type, **known}
        if each.name in known:
            return known[each.name]
        if each.name == "id":
            return sample_id(record.kind)
        if each.name.endswith("_id"):
            owner = each.belongs_to.parent.kind if each.belongs_to else each.name[:-3].rpartition("_")[2]
            return sample_id(owner)
        if each.snapshot_of:
            return self._other(each.snapshot_of)
        if each.default is not NODEFAULT:
            return each.default
        return of_type(typed(each))

    def _shown(self, record: type[Record], names: Mapping[str, str]) -> Json:
        found = [
            (names[each.name], self.value(record, each))
            for each in members(record)
            if Mark.OMITTED not in each.marks or self.value(record, each) is not None
        ]
        embedded = record.embedded
        if embedded:
            found.insert(-2, (names[embedded.name], [self._other(embedded.child)]))
        return dict(found)

    def _other(self, record: type[Record]) -> Json:
        shape = self._shapes.get(record)
        return self._shown(record, shape.names if shape else names_of(record))

    def _written(self, taken: Input) -> Json:
        found = {
            taken.names[each.name]: self.value(taken.record, each)
            for each in taken.taken
            if each.required or self.value(taken.record, each) != each.default
        }
        return found | (
            {taken.names[taken.embedded.name]: [self._written(taken.child)]}
            if taken.child and taken.embedded
            else {}
        )

    def _another(self, record: type[Record], each: Member) -> Any:
        """A new value for a member: not the default, if it is an enumeration."""
        others = [value for value in each.values if value != each.default]
        return others[0] if others else self.value(record, each)

    def delivered(self, shape: Shape, event_type: str) -> Json:
        """An event of a type as a receiver gets it; `shape` is the shape of events."""
        event = Examples(self._shapes, self._base_url, event_type).item(shape)
        return event | {"signedat": "2026-11-20T08:15:30.140Z", "attempt": 0}

    def _event(self) -> Json:
        kind, _, version = named(self._event_type)
        subjects = {"webhook": "webhook-endpoints"}
        return {
            "source": self._base_url,
            "type": self._event_type,
            "subject": f"{subjects.get(kind, f'{kind}s')}/{sample_id(kind)}",
            "time": _MOMENT,
            "dataschema": f"{self._base_url}/event-types/{self._event_type}",
            "data": {
                "entityType": kind,
                "entityId": sample_id(kind),
                "eventType": self._event_type,
                "timestamp": _MOMENT,
                "schemaVersion": version,
            },
            "traceparent": _TRACE,
        }


def named(event_type: str) -> tuple[str, str, str]:
    """`dev.tradepost.order.placed.v2` → order, placed, 2."""
    found = re.fullmatch(r"(?:.*\.)?(\w+)\.(?!v[0-9]+$)(\w+)(?:\.v([0-9]+))?", event_type)
    if found is None:
        raise AssertionError(event_type)
    return found[1], found[2], found[3] or "1"


def _changed(taken: list[Member]) -> Member | None:
    """The member that an example changes: an enumeration if there is one, else a number, else any."""
    ranked = sorted(taken, key=lambda each: (not each.values, not each.is_integer))
    return next(iter(ranked), None)


def of_type(schema: Json) -> Any:
    """A value that fits a schema, for members without an example."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "array":
        return [of_type(schema.get("items", {}))]
    if schema.get("type") == "string":
        formats = {"date-time": _MOMENT, "idn-email": "ada@example.com", "uuid": sample_id("")}
        patterns = {"^[A-Z]{3}$": "EUR", "^[A-Z]{2}$": "GB"}
        text = formats.get(schema.get("format", ""), patterns.get(schema.get("pattern", ""), "text"))
        return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength")]
    simple = {"integer": schema.get("minimum", 1), "number": schema.get("minimum", 1), "boolean": True}
    return simple.get(schema.get("type", ""), {})


_SERVER_ERROR = 500


def problem(kind: type[Problem], base_url: str) -> Json:
    """A problem of a kind, as it is answered."""
    known = {"detail": kind.title, "errors": []} | _DATA["problems"].get(kind.kind, {})
    status = status_of(kind)
    found: Json = {
        "type": f"{base_url}/problems/{kind.kind}",
        "title": kind.title,
        "status": status,
        "detail": known["detail"],
        "instance": "/v1/orders",
        "errors": known["errors"],
    }
    return found | ({"requestId": "5d0c2f9a1b7e-1a2b"} if status >= _SERVER_ERROR else {})
