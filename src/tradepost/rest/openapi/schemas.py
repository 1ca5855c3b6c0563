"""Schemas: what JSON holds, as JSON Schema 2020-12, read off the annotations of the records.

A record has a schema for what is shown of it (`User`), for what `fields` leaves of it (`UserFields`), for a
page of it, for the bodies that make or replace it (`UserInput`) and that change it (`UserPatch`).
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
from tradepost.rest.openapi.words import many, one, pascal
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
        "entityType": {"type": "string", "description": "What it happened to, such as order."},
        "entityId": {"type": "string", "format": "uuid", "description": "Its id."},
        "eventType": {"type": "string", "description": "The type of the event again."},
        "timestamp": {"type": "string", "format": "date-time", "description": "When it happened."},
        "schemaVersion": {"type": "string", "description": "The version of this object's schema."},
    },
}
_EVENT_ID: Json = _TEXT  # of a second schema version it is the id of the first, and a suffix
# What the type of a member does not tell.
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
    """The schemas of one version, each made once and referred to from then on."""

    def __init__(self, shapes: Mapping[type[Record], Shape], attempt_number: Json) -> None:
        self.shapes = shapes
        self.made: Json = {}
        self._configured = {("Attempt", "number"): attempt_number}  # of structs, what the settings say

    def item(self, shape: Shape) -> Json:
        """A whole item, as every answer shows it that is not told otherwise by `fields`."""
        return self._record(shape.record, shape.names, pascal(shape.record.kind))

    def selected(self, shape: Shape) -> Json:
        """An item, of which `fields` may have left members out."""
        whole = self.item(shape)
        name = f"{pascal(shape.record.kind)}Fields"
        properties = self._properties(shape.record, shape.names)
        some = self._named(
            name,
            {
                "type": "object",
                "description": f"The members of {one(shape.record)} that `fields` named, and its id.",
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
                        "description": "The `cursor` of the next page; null on the last.",
                    },
                },
            },
        )

    def created(self, shape: Shape) -> Json:
        """A new item, with the secrets that are shown this once."""
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
        """An item as webhooks deliver it: with what is `added` in each attempt."""
        name = pascal(shape.record.kind)
        self.item(shape)
        made: Json = self.made[name]
        return self._named(
            f"{name}Delivered",
            {
                **made,
                "description": f"{made['description']} As webhooks deliver it, signed.",
                "required": [*made["required"], *added],
                "properties": {**made["properties"], **added},
            },
        )

    def body(self, shape: Shape, *, under: bool) -> Json:
        """What makes or replaces an item."""
        taken, name = self._taken(shape, under=under)
        required = [
            taken.names[each]
            for each in [*(m.name for m in taken.taken if m.required), *self._children(taken)]
        ]
        return self._named(
            f"{name}Input",
            {
                "type": "object",
                "description": f"What {one(shape.record)} is to be. Left out, a member takes its default.",
                "additionalProperties": False,
                "required": required,
                "properties": self._writable(taken),
            },
        )

    def patch(self, shape: Shape, *, under: bool) -> Json:
        """What changes an item: a JSON Merge Patch (RFC 7396)."""
        taken, name = self._taken(shape, under=under, patching=True)
        return self._named(
            f"{name}Patch",
            {
                "type": "object",
                "description": f"What is to change of {one(shape.record)}. Null sets the default; a member "
                "without one cannot be null (422). Arrays are replaced.",
                "additionalProperties": False,
                "properties": self._writable(taken, patch=True),
            },
        )

    def _taken(self, shape: Shape, *, under: bool, patching: bool = False) -> tuple[Input, str]:
        """The input at an address, and its name: the parent's before it where the two addresses differ."""
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
        """A record that another shows: as it is at its own address, if it has one."""
        shape = self.shapes.get(record)
        return self._record(record, shape.names if shape else names_of(record), pascal(record.kind))

    def _properties(self, record: type[Record], names: Mapping[str, str]) -> Json:
        found = [(names[each.name], self._shown(record, each)) for each in members(record)]
        embedded = record.embedded
        if embedded:
            one_child = self._other(embedded.child)
            description = f"Its {many(embedded.child)}, in the order they were added."
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
        """The members of a body, in the order they are shown in; what is ignored is said to be."""
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
        """Embedded children of a body: whole, and those there are known by their ids."""
        child, embedded = taken.child, taken.embedded
        if child is None or embedded is None:
            raise AssertionError(taken.record)
        kept = {"type": "string", "description": "Of one that is there already: it is kept. Others are new."}
        properties = {**self._writable(child), "id": kept}
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
        description = f"All {many(child.record)} there are to be, in their order."
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
        """The schema of a member's value; structs in it are schemas of their own, named after the record."""
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
    """The schema of a member's value, null aside; structs in it are referred to."""
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
    """The schema, or null."""
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    wider: Json = {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        wider["enum"] = [*schema["enum"], None]
    return wider
