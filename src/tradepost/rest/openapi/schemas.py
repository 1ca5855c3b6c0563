"""Schemas of JSON values in JSON Schema 2020-12, derived from the annotations of the records.

A record has schemas for an item (`User`), for the members that `fields` selects (`UserFields`), for a page,
for the bodies that create or replace an item (`UserInput`), and for the bodies that change one (`UserPatch`).
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import NODEFAULT

from tradepost.domain.country import check_country
from tradepost.domain.email import check_email
from tradepost.domain.input import Input, names_of
from tradepost.domain.money import MAX_PRICE, UNITS, check_currency
from tradepost.domain.record import Mark, Member, Record, members
from tradepost.rest.openapi.words import many, one, pascal, words
from tradepost.rest.shape import Shape

Json = dict[str, Any]

_CHECKED: dict[Any, Json] = {
    check_email: {"format": "idn-email"},
    check_currency: {"pattern": "^[A-Z]{3}$"},
    check_country: {"pattern": "^[A-Z]{2}$"},
}
_TEXT: Json = {"type": "string"}
_EVENT_DATA: Json = {
    "type": "object",
    "required": ["entityType", "entityId", "eventType", "timestamp", "schemaVersion"],
    "properties": {
        "entityType": {"type": "string", "description": "Kind of the entity, such as order."},
        "entityId": {"type": "string", "format": "uuid", "description": "Id of the entity."},
        "eventType": {"type": "string", "description": "Type of the event, as in the envelope."},
        "timestamp": {"type": "string", "format": "date-time", "description": "When the event happened."},
        "schemaVersion": {"type": "string", "description": "Version of this object's schema."},
    },
}
_EVENT_ID: Json = _TEXT  # for a second schema version: the id for the first, with a suffix
# Schemas of members whose types do not define them fully.
_KNOWN: dict[tuple[str, str], Json] = {
    ("event", "id"): _EVENT_ID,
    ("event", "specversion"): {"const": "1.0", **_TEXT},
    ("event", "datacontenttype"): {"const": "application/json", **_TEXT},
    ("event", "source"): {"format": "uri", **_TEXT},
    ("event", "dataschema"): {"format": "uri", **_TEXT},
    ("event", "data"): _EVENT_DATA,
    ("webhook_delivery", "event_id"): _EVENT_ID,
}


class Schemas:
    """The schemas of one version. Each is made once, and references lead to it."""

    def __init__(self, shapes: Mapping[type[Record], Shape], attempt_number: Json) -> None:
        self.shapes = shapes
        self.made: Json = {}
        self._configured = {
            ("Attempt", "number"): attempt_number
        }  # members of structs that depend on settings

    def item(self, shape: Shape) -> Json:
        """A whole item, as responses show it without `fields`."""
        return self._record(shape.record, shape.names, pascal(shape.record.kind))

    def selected(self, shape: Shape) -> Json:
        """An item with all members, or with those that `fields` selected."""
        whole = self.item(shape)
        name = f"{pascal(shape.record.kind)}Fields"
        properties = self._properties(shape.record, shape.names)
        some = self._named(
            name,
            {
                "type": "object",
                "description": f"The members of {one(shape.record)} that `fields` selected, and its id.",
                "required": ["id"],
                "properties": properties,
            },
        )
        return {"anyOf": [whole, some]}

    def page(self, shape: Shape) -> Json:
        """A page of a list."""
        return self._named(
            f"{pascal(shape.record.kind)}Page",
            {
                "type": "object",
                "description": f"A page of {many(shape.record)}.",
                "required": ["items", "next"],
                "properties": {
                    "items": {"type": "array", "items": self.selected(shape)},
                    "next": {
                        "type": ["string", "null"],
                        "description": "The `cursor` of the next page; null on the last page.",
                    },
                },
            },
        )

    def created(self, shape: Shape) -> Json:
        """A new item with its secrets, which are shown only once."""
        secrets = shape.resource.actions.reveals if shape.resource.actions else {}
        whole = self.item(shape)
        if not secrets:
            return whole
        name = pascal(shape.record.kind)
        made: Json = self.made[name]
        revealed = {
            secret: {"type": "string", "readOnly": True, "description": text}
            for secret, text in secrets.items()
        }
        return self._named(
            f"{name}Created",
            {
                **made,
                "required": [*made["required"], *revealed],
                "properties": {**made["properties"], **revealed},
            },
        )

    def delivered(self, shape: Shape, added: Json) -> Json:
        """An item as webhooks deliver it: with the members that are `added` in each attempt."""
        name = pascal(shape.record.kind)
        self.item(shape)
        made: Json = self.made[name]
        return self._named(
            f"{name}Delivered",
            {
                **made,
                "description": f"{made['description']} In the form that webhooks deliver.",
                "required": [*made["required"], *added],
                "properties": {**made["properties"], **added},
            },
        )

    def body(self, shape: Shape, *, under: bool) -> Json:
        """The body that creates or replaces an item."""
        taken, name = self._taken(shape, under=under)
        required = [
            taken.names[each]
            for each in [*(m.name for m in taken.taken if m.required), *self._children(taken)]
        ]
        return self._named(
            f"{name}Input",
            {
                "type": "object",
                "description": f"The members of {one(shape.record)}. Members left out take their defaults.",
                "additionalProperties": False,
                "required": required,
                "properties": self._writable(taken),
            },
        )

    def patch(self, shape: Shape, *, under: bool) -> Json:
        """The body that changes an item: a JSON Merge Patch (RFC 7396)."""
        taken, name = self._taken(shape, under=under, patching=True)
        return self._named(
            f"{name}Patch",
            {
                "type": "object",
                "description": f"Changes to {one(shape.record)}. Null sets the default; a member without a "
                "default cannot be null (422). Arrays are replaced.",
                "additionalProperties": False,
                "properties": self._writable(taken, patch=True),
            },
        )

    def _taken(self, shape: Shape, *, under: bool, patching: bool = False) -> tuple[Input, str]:
        """The input at an address and its name, prefixed with the parent's where the two differ."""
        name = pascal(shape.record.kind)
        body = shape.input(under=under, patching=patching)
        if not under:
            return body, name
        same = body.taken == shape.input(under=False, patching=patching).taken
        parent = shape.resource.parent
        below = pascal(shape.resource.one)
        return body, name if same or parent is None else pascal(parent.parent.kind) + below

    def _record(self, record: type[Record], names: Mapping[str, str], name: str) -> Json:
        required = [names[each.name] for each in members(record) if Mark.OMITTED not in each.marks]
        if record.embedded:
            required.insert(-2, names[record.embedded.name])
        return self._named(
            name,
            {
                "type": "object",
                "description": (record.__doc__ or "").strip(),
                "required": required,
                "properties": self._properties(record, names),
            },
        )

    def _other(self, record: type[Record]) -> Json:
        """A record inside another one: in the version's shape if it has an address of its own."""
        shape = self.shapes.get(record)
        return self._record(record, shape.names if shape else names_of(record), pascal(record.kind))

    def _properties(self, record: type[Record], names: Mapping[str, str]) -> Json:
        found = [(names[each.name], self._shown(record, each)) for each in members(record)]
        embedded = record.embedded
        if embedded:
            one_child = self._other(embedded.child)
            description = f"The {many(embedded.child)} in the order they were added."
            children = {"type": "array", "minItems": 1, "items": one_child, "description": description}
            found.insert(-2, (names[embedded.name], children))
        return dict(found)

    def _shown(self, record: type[Record], each: Member) -> Json:
        schema = self._typed(record, each)
        if each.nullable and Mark.OMITTED not in each.marks:
            schema = nullable(schema)
        extras = {"readOnly": True} if each.read_only else {}
        return {**schema, "description": each.description, **extras}

    def _writable(self, taken: Input, *, patch: bool = False) -> Json:
        """The members of a body in the order of responses, ignored ones with a note."""
        own = {each.name: each for each in taken.taken}
        found: Json = {}
        for each in members(taken.record):
            name = taken.names[each.name]
            if each.name in own:
                found[name] = self._written(taken.record, each, patch=patch)
            else:
                found[name] = {"description": f"{each.description} Ignored here.", "readOnly": True}
        for children in self._children(taken):
            found[taken.names[children]] = self._children_of(taken)
        for secret in taken.revealed:
            found[secret] = {"description": "Ignored here.", "readOnly": True}
        return found

    def _written(self, record: type[Record], each: Member, *, patch: bool) -> Json:
        schema = self._typed(record, each)
        if Mark.MONEY in each.marks:
            schema |= {"maximum": MAX_PRICE // UNITS}
        if each.nullable or (patch and each.default is not NODEFAULT):
            schema = nullable(schema)
        default = {} if patch or each.default is NODEFAULT else {"default": each.default}
        return {**schema, **default, "description": each.description}

    def _children(self, taken: Input) -> list[str]:
        return [taken.embedded.name] if taken.embedded else []

    def _children_of(self, taken: Input) -> Json:
        """The embedded children of a body: all of them, existing ones identified by their ids."""
        child, embedded = taken.child, taken.embedded
        if child is None or embedded is None:
            raise AssertionError(taken.record)
        existing = {
            "type": "string",
            "description": f"Id of an existing {words(child.record.kind)} to keep; new ones have none.",
        }
        properties = {**self._writable(child), "id": existing}
        schema = self._named(
            f"{pascal(taken.record.kind)}Input{pascal(child.record.kind)}",
            {
                "type": "object",
                "description": f"{one(child.record).capitalize()} of {one(taken.record)}.",
                "additionalProperties": False,
                "required": [child.names[each.name] for each in child.taken if each.required],
                "properties": properties,
            },
        )
        description = f"The complete list of {many(child.record)}, in order."
        return {
            "type": "array",
            "minItems": 1,
            "maxItems": embedded.at_most,
            "items": schema,
            "description": description,
        }

    def _typed(self, record: type[Record], each: Member) -> Json:
        if each.snapshot_of:
            return self._other(each.snapshot_of)
        known = _KNOWN.get((record.kind, each.name))
        return self._typed_by_structs(record, each) if known is None else dict(known)

    def _typed_by_structs(self, record: type[Record], each: Member) -> Json:
        """The schema of a member's value; structs in it become schemas, named after the record."""
        name = f"#/components/schemas/{pascal(record.kind)}{{name}}"
        _, structs = msgspec.json.schema_components([each.type], ref_template=name)
        for struct, schema in structs.items():
            for member, shown in schema["properties"].items():
                shown.update(self._configured.get((struct, member), {}))
            self._named(f"{pascal(record.kind)}{struct}", {k: v for k, v in schema.items() if k != "title"})
        return typed(each, name)

    def _named(self, name: str, schema: Json) -> Json:
        if self.made.setdefault(name, schema) != schema:
            message = f"two schemas are called {name}"
            raise AssertionError(message)
        return {"$ref": f"#/components/schemas/{name}"}


def typed(each: Member, reference: str = "#/$defs/{name}") -> Json:
    """The schema of a member's value without null; structs in it are references."""
    if Mark.MONEY in each.marks:
        return {"type": "number", "minimum": 0}
    ((found,), _) = msgspec.json.schema_components([each.type], ref_template=reference)
    found.pop("description", None)
    found = next((option for option in found.get("anyOf", ()) if option != {"type": "null"}), found)
    if each.values:
        return {"type": "string", "enum": list(each.values)}
    if "items" in found and "enum" in found["items"]:
        found["items"] = {"type": "string", **found["items"]}
    if each.is_instant:
        found["format"] = "date-time"
    if each.name == "id" or each.name.endswith("_id"):
        found["format"] = "uuid"
    return {**found, **_CHECKED.get(each.check, {})}


def nullable(schema: Json) -> Json:
    """The schema, extended by null."""
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    wider: Json = {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        wider["enum"] = [*schema["enum"], None]
    return wider
