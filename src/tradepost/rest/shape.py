"""The shape of a resource in one version: its members' names, its JSON and its input.

An expression that is generated once from the record's declaration puts a row into a struct. Only money and
JSON documents are converted.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
import xxhash
from msgspec import Struct

from tradepost.domain.input import Input, names_of
from tradepost.domain.money import UNITS
from tradepost.domain.record import Mark, Member, Record, members
from tradepost.problems import Malformed
from tradepost.resource import Resource
from tradepost.storage.database import Row
from tradepost.storage.record_statements import statements_of
from tradepost.versions.changes import Version


class View(NamedTuple):
    """Functions that make rows encodable: `one` item from its rows, or `many` items of a list."""

    one: Callable[[Sequence[Row]], Any]
    many: Callable[[Sequence[Row]], list[Any]]


_MAX_FIELD_SETS = 256


class Shape:
    """One resource in one version."""

    def __init__(self, resource: Resource, version: Version) -> None:
        record = resource.record
        self.resource = resource
        self.version = version
        self.record = record
        self.statements = statements_of(record)
        self.names = version.names(record.kind, names_of(record))
        self.inside = {outside: name for name, outside in self.names.items()}
        self.members = {self.names[each.name]: each for each in members(record)}
        self.embedded = record.embedded
        child = self.embedded.child if self.embedded else None
        self.child_names = version.names(child.kind, names_of(child)) if child else {}
        self.input = lru_cache(None)(self._input)
        self.width = len(self.statements.names)
        self.version_at = self.width - 1
        self.revision = xxhash.xxh32_hexdigest(repr([*_shown_names(record, version), version.name]).encode())[
            :4
        ]
        # The strong ETag of an item by the version of its row, with the revision of its representation.
        self.tag: Callable[[int], bytes] = f'"%d.{self.revision}"'.encode().__mod__
        self.under_at = self.statements.names.index(resource.under) if resource.under else 0
        if resource.parent:
            self.parent_statements = statements_of(resource.parent.parent)
            self.parent_segment = resource.parent.parent.plural.replace("_", "-")
        self._known: dict[str, Any] = {"Raw": msgspec.Raw, "UNSET": msgspec.UNSET} | {
            each.name: _snapshot(
                version.names(each.snapshot_of.kind, names_of(each.snapshot_of)), each.snapshot_of
            )
            for each in members(record)
            if each.snapshot_of
        }
        self.view = self._view(None)
        self.fields = lru_cache(_MAX_FIELD_SETS)(self._view)

    def _input(self, *, under: bool, patching: bool = False) -> Input:
        """The input for a body at the resource's own address, or at the one `under` its parent."""
        fixed = frozenset([self.resource.under] if under and self.resource.under else [])
        revealed = self.resource.actions.reveals if self.resource.actions else ()
        return Input(self.record, self.names, fixed, self.child_names, revealed, patching=patching)

    @property
    def error_names(self) -> dict[str | tuple[str, str], str]:
        """External names of members by internal ones; those of embedded children by (parent member, name)."""
        names: dict[str | tuple[str, str], str] = dict(self.names.items())
        children = self.embedded.name if self.embedded else ""
        return names | {(children, name): outside for name, outside in self.child_names.items()}

    def chosen(self, fields: str) -> frozenset[str]:
        """The internal names of the members that `fields` names. Raises `Malformed` for an unknown one."""
        names = [name.strip() for name in fields.split(",") if name.strip()]
        unknown = [name for name in names if name not in self.inside]
        if unknown:
            message = f"fields must be members of {', '.join(self.inside)}; remove {', '.join(unknown)}"
            raise Malformed(message)
        return frozenset({"id", *(self.inside[name] for name in names)})

    def writable(self, rows: Sequence[Row]) -> dict[str, Any]:
        """The body that would not change an item: the target of a merge patch (RFC 7396)."""
        shown: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.view.one(rows)))
        body = self.input(under=False, patching=True)
        if self.embedded and body.child:
            taken = {"id", *(self.child_names[each.name] for each in body.child.taken)}
            children = self.names[self.embedded.name]
            shown[children] = [
                {name: each[name] for name in each if name in taken} for each in shown[children]
            ]
        return {name: value for name, value in shown.items() if name in body.takes}

    def _view(self, chosen: frozenset[str] | None) -> View:
        name = f"{self.version.name}_{self.record.kind}"
        embedded = self.embedded
        if embedded is None or (chosen is not None and embedded.name not in chosen):
            made = _struct(name, _expressions(self.record, 0, self.names, chosen))
            known = {"Made": made.struct, **self._known}
            return View(
                eval(f"lambda rows: (row := rows[0]) and {made.call}", known),  # noqa: S307
                eval(f"lambda rows: [{made.call} for row in rows]", known),  # noqa: S307
            )
        expressions = _expressions(embedded.child, self.width, self.child_names, None)
        below = _struct(f"{name}_{embedded.child.kind}", expressions, "Below")
        children = f"[{below.call} for row in rows if row[{self.width}] is not None]"
        shown = [
            (outside, value.replace("row[", "first["))
            for outside, value in _expressions(self.record, 0, self.names, chosen)
        ]
        shown.insert(-2, (self.names[embedded.name], children))
        made = _struct(name, shown)
        known = {"Made": made.struct, "Below": below.struct, **self._known}
        one = eval(f"lambda rows: (first := rows[0]) and {made.call}", known)  # noqa: S307
        return View(one, lambda rows: [one(list(run)) for _, run in groupby(rows, itemgetter(0))])


def _shown_names(record: type[Record], version: Version) -> list[dict[str, str]]:
    """The external names of a record's members, of its embedded children and of its snapshots."""
    within = [each.snapshot_of for each in members(record) if each.snapshot_of]
    within += [record.embedded.child] if record.embedded else []
    return [version.names(each.kind, names_of(each)) for each in (record, *within)]


class _Struct(NamedTuple):
    """A struct to encode, and the expression that makes one from `row`."""

    struct: type[Struct]
    call: str


def _snapshot(names: dict[str, str], of: type[Record]) -> Callable[[str], msgspec.Raw]:
    """A function that renames the members of a stored snapshot as the version does."""
    renamed = {each.json_name: names[each.name] for each in members(of) if each.json_name != names[each.name]}
    if not renamed:
        return msgspec.Raw

    def shown(stored: str) -> msgspec.Raw:
        values = {renamed.get(name, name): value for name, value in msgspec.json.decode(stored).items()}
        return msgspec.Raw(msgspec.json.encode(values))

    return shown


def _struct(name: str, shown: list[tuple[str, str]], called: str = "Made") -> _Struct:
    """The struct for expressions by external names. Its code has positions only, so no names can enter it."""
    places = [f"m{i}" for i in range(len(shown))]
    outside = dict(zip(places, [outside for outside, _ in shown], strict=True))
    struct = msgspec.defstruct(name, [(place, Any) for place in places], rename=outside, gc=False)
    return _Struct(struct, f"{called}({', '.join(value for _, value in shown)})")


def _expressions(
    record: type[Record], offset: int, names: dict[str, str], chosen: frozenset[str] | None
) -> list[tuple[str, str]]:
    """For each member shown: its external name, and the expression of its value in `row`."""
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
        shown = f"{each.name}({value})" if each.snapshot_of else f"Raw({value})"
        return shown if not each.nullable else f"(None if {value} is None else {shown})"
    return value
