"""The shape of a resource in one version: its members' names, how a row becomes JSON and a body values.

A row is laid into a struct by an expression made once from the record's declaration; there is no conversion
on the way but that of money and of documents kept as JSON.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

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

Render = Callable[[Sequence[Row]], Any]
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
        self.item: Render = self._renderer(None)
        self.fields = lru_cache(_FIELD_SETS_KEPT)(self._renderer)

    def tag(self, row: Row) -> bytes:
        """The strong ETag of an item: its row's version, and the revision of what a row looks like."""
        return f'"{row[self.version_at]}.{self.revision}"'.encode()

    def items(self, rows: Sequence[Row], render: Render | None = None) -> list[Any]:
        """The items of a list: a row each, or a run of rows each where children are embedded."""
        one = render or self.item
        if self.embeds:
            return [one(list(run)) for _, run in groupby(rows, itemgetter(0))]
        return [one((row,)) for row in rows]

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
        shown: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.item(rows)))
        for child in shown.get(self.names.get(_CHILDREN, ""), ()):
            for name in [name for name in child if name not in ("id", "productId", "quantity")]:
                del child[name]
        taken = {self.names[each.name] for each in self.input.taken} | {self.names.get(_CHILDREN, "")}
        return {name: value for name, value in shown.items() if name in taken}

    def _renderer(self, chosen: frozenset[str] | None) -> Render:
        row = _expressions(self.record, 0, self.names, chosen)
        if self.embeds and (chosen is None or _CHILDREN in chosen):
            child = embedded_child(self.record)
            if child is None:
                raise AssertionError(self.record)
            inner = _lambda(
                f"{self.version.name}_{child[0].kind}",
                _expressions(child[0], self.width, names_of(child[0]), None),
            )
            row.insert(
                -2, (self.names[_CHILDREN], "[child((each,)) for each in rows if each[width] is not None]")
            )
            return _lambda(f"{self.version.name}_{self.record.kind}", row, child=inner, width=self.width)
        return _lambda(f"{self.version.name}_{self.record.kind}", row)


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


def _lambda(name: str, shown: list[tuple[str, str]], **context: Any) -> Render:
    """A function from rows to a struct, made of positions alone: no caller's text is in it."""
    view = msgspec.defstruct(
        name,
        [(f"m{i}", Any) for i in range(len(shown))],
        rename={f"m{i}": each[0] for i, each in enumerate(shown)},
        gc=False,
    )
    source = f"lambda rows: (row := rows[0]) and View({', '.join(value for _, value in shown)})"
    render: Render = eval(source, {"View": view, "Raw": msgspec.Raw, "UNSET": msgspec.UNSET, **context})  # noqa: S307
    return render
