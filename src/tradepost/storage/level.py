"""The statements of a level: what many parents have, in one statement whatever their number.

Each takes the ids of what it is about as the list `ids`, and one of `owned` things also their `owner`.
"""

from functools import cache

from sqlalchemy import BindParameter, ColumnElement, bindparam, func, literal_column, select

from tradepost.domain.record import Record, member
from tradepost.storage.record_statements import ownership, statements_of
from tradepost.storage.statement import Statement, in_list
from tradepost.storage.tables import BIG, table

_BEYOND = "'~'"  # sorts behind every id


@cache
def by_id(record: type[Record], *, owned: bool = False) -> Statement:
    """The one with this `id`."""
    found = statements_of(record)
    conditions = [found.table.c.id == bindparam("id"), *found.seen(), *(found.owned() if owned else [])]
    return Statement(f"the {record.kind} with this id", select(*found.columns).where(*conditions))


@cache
def by_ids(record: type[Record], *, owned: bool = False) -> Statement:
    """Those with these ids."""
    found = statements_of(record)
    conditions = [in_list(found.table.c.id, "ids"), *found.seen(), *(found.owned() if owned else [])]
    return Statement(f"the {record.plural} with these ids", select(*found.columns).where(*conditions))


@cache
def children(record: type[Record], key: str) -> Statement:
    """All that belong to parents with these ids, by the foreign key `key`."""
    found = statements_of(record)
    column = found.table.c[key]
    return Statement(
        f"the {record.plural} of parents",
        select(*found.columns)
        .where(in_list(column, "ids"), *found.seen())
        .order_by(column, found.table.c.id),
    )


@cache
def pages(record: type[Record], key: str, *, owned: bool = False) -> Statement:
    """For each parent the first ones behind the id `after`, `more` of them and one.

    Where a parent's page ends is looked up first, so that only its own range of the index is read: a parent
    with a million children costs what one with a page of them does.
    """
    found = statements_of(record)
    link = member(record, key).belongs_to
    if link is None:
        raise AssertionError(key)
    above, below, c = table(link.parent), found.table.alias("below"), found.table.c
    after: BindParameter[str] = bindparam("after")
    seen: list[ColumnElement[bool]] = [below.c.deleted_at.is_(None)] if record.hides_deleted else []
    mine = ownership(record, below) if owned else None
    seen += [] if mine is None else [mine]
    last = (
        select(below.c.id)
        .where(below.c[key] == above.c.id, below.c.id > after, *seen)
        .order_by(below.c.id)
        .limit(1)
        .offset(bindparam("more", type_=BIG))
        .scalar_subquery()
    )
    parent = (
        select(above.c.id, func.coalesce(last, literal_column(_BEYOND)).label("last"))
        .where(in_list(above.c.id, "ids"))
        .cte("parent")
        .prefix_with("MATERIALIZED")
    )
    shown = [*found.seen(), *(found.owned() if owned else [])]
    on = (c[key] == parent.c.id) & (c.id > after) & (c.id <= parent.c.last)
    return Statement(
        f"a page of {record.plural} for each parent",
        select(*found.columns).join_from(parent, found.table, on).where(*shown).order_by(c[key], c.id),
    )


@cache
def counts(record: type[Record], key: str, *, owned: bool = False) -> Statement:
    """How many there are of parents that have any: rows of (parent's id, count)."""
    found = statements_of(record)
    column = found.table.c[key]
    shown = [*found.seen(), *(found.owned() if owned else [])]
    return Statement(
        f"how many {record.plural} parents have",
        select(column, func.count()).where(in_list(column, "ids"), *shown).group_by(column),
        bounded=False,
    )


@cache
def total(record: type[Record], *, owned: bool = False) -> Statement:
    """How many there are."""
    found = statements_of(record)
    conditions = [*found.seen(), *(found.owned() if owned else [])]
    return Statement(
        f"how many {record.plural} there are",
        select(func.count()).select_from(found.table).where(*conditions),
        bounded=False,
    )
