"""The statements of a level of a query: one statement for the children of any number of parents.

The parameter `ids` is the list of ids; statements for `owned` items also take the id of their `owner`.
"""

from functools import cache

from sqlalchemy import BindParameter, ColumnElement, bindparam, func, literal_column, select

from tradepost.domain.record import Record, member
from tradepost.storage.record_statements import ownership, statements_of
from tradepost.storage.statement import Statement, in_list
from tradepost.storage.tables import BIG, table

_BEYOND = "'~'"  # sorts after every id


@cache
def by_id(record: type[Record], *, owned: bool = False) -> Statement:
    """The item with this `id`."""
    of = statements_of(record)
    conditions = [of.table.c.id == bindparam("id"), *of.visible(), *(of.owned() if owned else [])]
    return Statement(f"the {record.kind} with this id", select(*of.columns).where(*conditions))


@cache
def by_ids(record: type[Record], *, owned: bool = False) -> Statement:
    """The items with these `ids`."""
    of = statements_of(record)
    conditions = [in_list(of.table.c.id, "ids"), *of.visible(), *(of.owned() if owned else [])]
    return Statement(f"the {record.plural} with these ids", select(*of.columns).where(*conditions))


@cache
def children(record: type[Record], key: str) -> Statement:
    """All children of the parents with these `ids`, by the foreign key `key`."""
    of = statements_of(record)
    column = of.table.c[key]
    return Statement(
        f"the {record.plural} of parents",
        select(*of.columns).where(in_list(column, "ids"), *of.visible()).order_by(column, of.table.c.id),
    )


@cache
def pages(record: type[Record], key: str, *, owned: bool = False) -> Statement:
    """For each parent, its first `more` + 1 children after the id `after`.

    The end of each parent's page is looked up first, so that only its own range of the index is read: a
    parent with a million children costs the same as one with a page of them.
    """
    of = statements_of(record)
    link = member(record, key).belongs_to
    if link is None:
        raise AssertionError(key)
    above, below, c = table(link.parent), of.table.alias("below"), of.table.c
    after: BindParameter[str] = bindparam("after")
    visible: list[ColumnElement[bool]] = [below.c.deleted_at.is_(None)] if record.hides_deleted else []
    mine = ownership(record, below) if owned else None
    visible += [] if mine is None else [mine]
    last = (
        select(below.c.id)
        .where(below.c[key] == above.c.id, below.c.id > after, *visible)
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
    shown = [*of.visible(), *(of.owned() if owned else [])]
    on = (c[key] == parent.c.id) & (c.id > after) & (c.id <= parent.c.last)
    return Statement(
        f"a page of {record.plural} for each parent",
        select(*of.columns).join_from(parent, of.table, on).where(*shown).order_by(c[key], c.id),
    )


@cache
def counts(record: type[Record], key: str, *, owned: bool = False) -> Statement:
    """The number of children of each parent that has any: rows of (parent's id, count)."""
    of = statements_of(record)
    column = of.table.c[key]
    shown = [*of.visible(), *(of.owned() if owned else [])]
    return Statement(
        f"the number of {record.plural} of each parent",
        select(column, func.count()).where(in_list(column, "ids"), *shown).group_by(column),
        bounded=False,
    )


@cache
def total(record: type[Record], *, owned: bool = False) -> Statement:
    """The number of all items."""
    of = statements_of(record)
    conditions = [*of.visible(), *(of.owned() if owned else [])]
    return Statement(
        f"the number of {record.plural}",
        select(func.count()).select_from(of.table).where(*conditions),
        bounded=False,
    )
