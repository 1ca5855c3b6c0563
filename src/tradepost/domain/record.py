"""Records: structs whose annotations declare everything that the other floors need to know.

    class Product(Record):
        kind, plural = "product", "products"
        sku: Annotated[str, Meta(min_length=1, max_length=64), UNIQUE, SORTABLE, FILTERABLE]

Its table, its JSON, its input, its filters and its documentation are derived from this declaration.
"""

import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
from msgspec import NODEFAULT, Meta, Struct


class Mark(Enum):
    """A property of a member that one word in its annotation declares."""

    READ_ONLY = "set by the service; accepted and ignored in a body"
    FILTERABLE = "a query parameter with its name filters lists"
    RANGED = "the filter also takes [gte], [gt], [lte], [lt]"
    SORTABLE = "lists can be sorted by it; it has an index"
    UNIQUE = "no two items have the same value"
    UNIQUE_FOLDED = "no two items have the same value, regardless of case"
    MONEY = "an integer internally, major units of the record's currency externally"
    JSON = "a JSON document, passed on unchanged"
    OMITTED = "left out if it has no value"
    INSTANT = "an RFC 3339 instant; needed only where the name does not imply it"
    EVENT_TYPE = "the type of an event; a filter also takes it without the service's prefix"
    PATCHED = "only PATCH takes it; other methods ignore it like a read-only member"


READ_ONLY, FILTERABLE, RANGED, SORTABLE = Mark.READ_ONLY, Mark.FILTERABLE, Mark.RANGED, Mark.SORTABLE
UNIQUE, UNIQUE_FOLDED, MONEY, JSON = Mark.UNIQUE, Mark.UNIQUE_FOLDED, Mark.MONEY, Mark.JSON
OMITTED, INSTANT, EVENT_TYPE, PATCHED = Mark.OMITTED, Mark.INSTANT, Mark.EVENT_TYPE, Mark.PATCHED


@dataclass(frozen=True)
class BelongsTo:
    """The member holds the id of a parent; `reverse` is the name of the children on the parent.

    `embedded` children are part of their parent's representation, 1 to `at_most` of them.
    """

    parent: type["Record"]
    reverse: str
    embedded: bool = False
    at_most: int = 100


class Embedded(NamedTuple):
    """The children in a record's representation: their record, its foreign key, their name and maximum."""

    child: type["Record"]
    key: str
    name: str
    at_most: int


@dataclass(frozen=True)
class SnapshotOf:
    """The member holds the JSON of another record's item as it was at one moment."""

    of: type["Record"]


@dataclass(frozen=True)
class Checked:
    """A rule beyond the type. `check` takes the value and returns why it is not valid, or None."""

    check: Callable[[Any], str | None]


_BOUNDS = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length")  # of `Meta`


def _unwrap(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    if typing.get_origin(hint) is Annotated:
        return hint.__origin__, hint.__metadata__
    return hint, ()


class Record(Struct, kw_only=True):
    """The base of all records. `version` counts the changes of the row; it is part of the item's ETag."""

    kind: ClassVar[str]
    plural: ClassVar[str]
    hides_deleted: ClassVar[bool] = False  # DELETE hides the row instead of removing it
    is_owner: ClassVar[bool] = (
        False  # API keys can act for one item of this record, with access to its children
    )
    is_log: ClassVar[bool] = False  # append-only, read in the order of positions
    embedded: ClassVar[Embedded | None] = None  # set by the declaration of the child

    id: Annotated[str, Meta(description="Opaque identifier. Ids ascend in the order of creation."), READ_ONLY]
    version: int = 1

    def __init_subclass__(cls, **options: Any) -> None:
        """Registers embedded children with their parent."""
        super().__init_subclass__(**options)
        for name, hint in vars(cls).get("__annotations__", {}).items():
            for link in _unwrap(hint)[1]:
                if isinstance(link, BelongsTo) and link.embedded:
                    link.parent.embedded = Embedded(cls, name, link.reverse, link.at_most)


class Dated(Record, kw_only=True):
    """A record with the instants of its creation and last change."""

    created_at: Annotated[
        str, Meta(description="When it was created, RFC 3339."), READ_ONLY, FILTERABLE, RANGED, SORTABLE
    ]
    updated_at: Annotated[
        str, Meta(description="When it last changed, RFC 3339."), READ_ONLY, FILTERABLE, RANGED, SORTABLE
    ]


@dataclass(frozen=True)
class Member:
    """One member of a record, as its annotations declare it."""

    name: str
    type: Any
    default: Any
    nullable: bool
    marks: frozenset[Mark]
    check: Callable[[Any], str | None] | None
    belongs_to: BelongsTo | None
    snapshot_of: "type[Record] | None"
    description: str
    values: tuple[str, ...]  # of an enumeration; otherwise empty

    @property
    def json_name(self) -> str:
        return camel(self.name)

    @property
    def is_integer(self) -> bool:
        """Whether it is stored as an integer; all other members are stored as text."""
        return _without_none(_unwrap(self.type)[0]) is int

    @property
    def read_only(self) -> bool:
        return Mark.READ_ONLY in self.marks

    @property
    def required(self) -> bool:
        return not self.read_only and self.default is NODEFAULT

    @property
    def is_instant(self) -> bool:
        """Whether it is a text that holds an instant."""
        return self.name.endswith("_at") or self.name == "time" or Mark.INSTANT in self.marks


@cache
def members(record: type[Record]) -> tuple[Member, ...]:
    """The members of a record in the order of its JSON: the id, its own members, the two instants."""
    hints = typing.get_type_hints(record, include_extras=True)
    defaults = {field.name: _default(field) for field in msgspec.structs.fields(record)}
    dates = [name for name in ("created_at", "updated_at") if name in defaults]
    own = [name for name in record.__struct_fields__ if name not in ("id", "version", *dates)]
    return tuple(_member(name, hints[name], defaults[name]) for name in ("id", *own, *dates))


@cache
def member(record: type[Record], name: str) -> Member:
    """The member with this internal name. Raises `KeyError` if there is none."""
    return {each.name: each for each in members(record)}[name]


@cache
def parents(record: type[Record]) -> tuple[tuple[Member, BelongsTo], ...]:
    """The foreign keys of a record, each with its parent."""
    return tuple((each, each.belongs_to) for each in members(record) if each.belongs_to)


def camel(name: str) -> str:
    """`line_items` → `lineItems`."""
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


def _default(field: Any) -> Any:
    return field.default if field.default_factory is NODEFAULT else field.default_factory()


def _member(name: str, hint: Any, default: Any) -> Member:
    inner, extras = _unwrap(hint)
    metas = [extra for extra in extras if isinstance(extra, Meta)]
    return Member(
        name=name,
        type=_bounded(inner, metas) if metas else inner,
        default=default,
        nullable=type(None) in typing.get_args(inner),
        marks=frozenset(extra for extra in extras if isinstance(extra, Mark)),
        check=next((extra.check for extra in extras if isinstance(extra, Checked)), None),
        belongs_to=next((extra for extra in extras if isinstance(extra, BelongsTo)), None),
        snapshot_of=next((extra.of for extra in extras if isinstance(extra, SnapshotOf)), None),
        description=next((meta.description for meta in metas if meta.description), ""),
        values=values_of(inner),
    )


def _bounded(inner: Any, metas: list[Meta]) -> Any:
    """A type with its bounds; those of a nullable type are bounds of its values, as msgspec requires."""
    bounds = {name: getattr(meta, name) for meta in metas for name in _BOUNDS}
    if type(None) not in typing.get_args(inner) or set(bounds.values()) == {None}:
        return Annotated[inner, *metas]
    value = next(each for each in typing.get_args(inner) if each is not type(None))
    described = [Meta(description=meta.description) for meta in metas]
    return Annotated[Annotated[value, Meta(**bounds)] | None, *described]


def _without_none(hint: Any) -> Any:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return next(_unwrap(arg)[0] for arg in typing.get_args(hint) if arg is not type(None))
    return hint


def values_of(hint: Any) -> tuple[str, ...]:
    """The values of an enumeration; empty if the type is not one."""
    inner = _without_none(_unwrap(hint)[0])
    return typing.get_args(inner) if typing.get_origin(inner) is typing.Literal else ()


def items_of(hint: Any) -> Any:
    """The type of the items of a list; `Any` if the type is not a list."""
    inner = _without_none(_unwrap(hint)[0])
    return typing.get_args(inner)[0] if typing.get_origin(inner) is list else Any
