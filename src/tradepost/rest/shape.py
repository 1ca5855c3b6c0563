"""The shape of a resource in one version: its members' names, how a row becomes JSON and a body values.

A row is laid into a struct by an expression made once from the record's declaration; there is no conversion
on the way but that of money and of documents kept as JSON.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
import xxhash

from tradepost.domain.input import Input, names_of
from tradepost.domain.money import UNITS
from tradepost.domain.record import Mark, Member, Record, embedded_child, members
from tradepost.problems import Malformed
from tradepost.resource import Resource
from tradepost.storage.database import Row
from tradepost.storage.plain import plain
from tradepost.versions.changes import Version


class View(NamedTuple):
    """How rows become JSON: `one` item of its rows, or `many` of a list."""

    one: Callable[[Sequence[Row]], Any]
    many: Callable[[Sequence[Row]], list[Any]]


_CHILDREN = "line_items"
_FIELD_SETS_KEPT = 256


class Shape:
    """One resource as one version shows it."""

    def __init__(self, resource: Resource, version: Version) -> None:
        record = resource.record
        self.resource = resource
        self.version = version
        self.record = record
        self.statements = plain(record)
        self.names = version.names(record.kind, names_of(record))
        self.inside = {outside: name for name, outside in self.names.items()}
        self.members = {self.names[each.name]: each for each in members(record)}
        self.embeds = _CHILDREN in self.names
        self.input = Input(record, self.names)
        self.input_under = Input(record, self.names, frozenset([resource.under] if resource.under else []))
        self.width = len(self.statements.names)
        self.version_at = self.width - 1
        self.revision = xxhash.xxh32_hexdigest(repr([self.names, version.name]).encode())[:4]
        self.under_at = self.statements.names.index(resource.under) if resource.under else 0
        if resource.parent:
            self.parent_statements = plain(resource.parent.parent)
            self.parent_segment = resource.parent.parent.plural.replace("_", "-")
        self.view = self._view(None)
        self.fields = lru_cache(_FIELD_SETS_KEPT)(self._view)

    def tag(self, row: Row) -> bytes:
        """The strong ETag of an item: its row's version, and the revision of what a row looks like."""
        return f'"{row[self.version_at]}.{self.revision}"'.encode()

    def chosen(self, fields: str) -> frozenset[str]:
        """The members that `fields` names, by their names inside; raises `Malformed` for an unknown one."""
        asked = [name.strip() for name in fields.split(",") if name.strip()]
        unknown = [name for name in asked if name not in self.inside]
        if unknown:
            message = f"fields names no member {', '.join(unknown)}; there are {', '.join(self.inside)}"
            raise Malformed(message)
        return frozenset({"id", *(self.inside[name] for name in asked)})

    def writable(self, rows: Sequence[Row]) -> dict[str, Any]:
        """What a body could say to leave the record as it is: the ground a merge patch is applied to."""
        shown: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.view.one(rows)))
        for child in shown.get(self.names.get(_CHILDREN, ""), ()):
            for name in [name for name in child if name not in ("id", "productId", "quantity")]:
                del child[name]
        taken = {self.names[each.name] for each in self.input.taken} | {self.names.get(_CHILDREN, "")}
        return {name: value for name, value in shown.items() if name in taken}

    def _view(self, chosen: frozenset[str] | None) -> View:
        name = f"{self.version.name}_{self.record.kind}"
        shown = _expressions(self.record, 0, self.names, chosen)
        child = embedded_child(self.record)
        if child is None or (chosen is not None and _CHILDREN not in chosen):
            return _compiled(name, shown)
        below = _expressions(child[0], self.width, names_of(child[0]), None)
        children = _compiled(f"{self.version.name}_{child[0].kind}", below).many
        width = self.width
        shown.insert(-2, (self.names[_CHILDREN], "row[-1]"))
        item = _compiled(name, shown).one

        def one(rows: Sequence[Row]) -> Any:
            return item([(*rows[0], children([row for row in rows if row[width] is not None]))])

        return View(one, lambda rows: [one(list(run)) for _, run in groupby(rows, itemgetter(0))])


def _expressions(
    record: type[Record], offset: int, names: dict[str, str], chosen: frozenset[str] | None
) -> list[tuple[str, str]]:
    """For each member shown: its name outside, and where its value is in `row`."""
    return [
        (names[each.name], _expression(each, offset + position))
        for position, each in enumerate(members(record))
        if chosen is None or each.name in chosen
    ]


def _expression(each: Member, position: int) -> str:
    value = f"row[{position}]"
    if Mark.MONEY in each.marks:
        return f"{value} / {UNITS}"
    if Mark.OMITTED in each.marks:
        return f"(UNSET if {value} is None else {value})"
    if Mark.JSON in each.marks:
        return f"Raw({value})" if not each.nullable else f"(None if {value} is None else Raw({value}))"
    return value


def _compiled(name: str, shown: list[tuple[str, str]]) -> View:
    """Functions from rows to structs, made of positions alone: no caller's text is in them."""
    places = [f"m{i}" for i in range(len(shown))]
    outside = dict(zip(places, [name for name, _ in shown], strict=True))
    made = msgspec.defstruct(name, [(place, Any) for place in places], rename=outside, gc=False)
    call = f"Made({', '.join(value for _, value in shown)})"
    known = {"Made": made, "Raw": msgspec.Raw, "UNSET": msgspec.UNSET}
    return View(
        eval(f"lambda rows: (row := rows[0]) and {call}", known),  # noqa: S307
        eval(f"lambda rows: [{call} for row in rows]", known),  # noqa: S307
    )
