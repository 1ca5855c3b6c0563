"""The tables: those of the records are derived from the records, the others stand here.

Every column is text or a 64-bit integer, on both engines alike, so that a row needs no conversion on its
way out. Text compares by bytes on both (PostgreSQL: collation "C").
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from tradepost.domain.address import Address
from tradepost.domain.api_key import ApiKey
from tradepost.domain.event import Event
from tradepost.domain.line_item import LineItem
from tradepost.domain.order import Order
from tradepost.domain.product import Product
from tradepost.domain.record import Mark, Member, Record, members, parents
from tradepost.domain.user import User

metadata = MetaData()

BYTES_ORDERED = Text().with_variant(Text(collation="C"), "postgresql")
BIG = BigInteger().with_variant(Integer(), "sqlite")


def table(record: type[Record]) -> Table:
    """The table of a record, with its indexes."""
    if record.plural in metadata.tables:
        return metadata.tables[record.plural]
    made = Table(
        record.plural,
        metadata,
        *_columns(record),
        PrimaryKeyConstraint(*_key(record)),
        Column("version", BIG, nullable=False),
        *([Column("deleted_at", BYTES_ORDERED)] if record.hides_deleted else []),
        sqlite_with_rowid=False,
    )
    if len(made.primary_key.columns) > 1:
        Index(f"{record.plural}_id_key", made.c.id, unique=True)
    for each in members(record):
        _index(made, record, each)
    return made


def _key(record: type[Record]) -> tuple[str, ...]:
    """Embedded children are kept in the order of their parents: those of one lie side by side."""
    above = next((key.name for key, link in parents(record) if link.embedded), None)
    return ("id",) if above is None else (above, "id")


def folded(member: Member) -> str:
    """The column that keeps a member case-folded."""
    return f"{member.name}_key"


def _columns(record: type[Record]) -> list[Column[str]]:
    columns: list[Column[str]] = []
    for each in members(record):
        kind: Any = BIG if each.is_integer else BYTES_ORDERED
        keys = [ForeignKey(table(each.belongs_to.parent).c.id)] if each.belongs_to else []
        columns.append(Column(each.name, kind, *keys, nullable=each.nullable))
        if Mark.UNIQUE_FOLDED in each.marks:
            columns.append(Column(folded(each), BYTES_ORDERED, nullable=False))
    return columns


def _index(made: Table, record: type[Record], each: Member) -> None:
    """Uniqueness, foreign keys and sorting each bring their index; `createdAt` sorts by the id itself."""
    name, seen = record.plural, text("deleted_at IS NULL") if record.hides_deleted else None
    where: dict[str, Any] = {} if seen is None else {"sqlite_where": seen, "postgresql_where": seen}
    if Mark.UNIQUE in each.marks:
        Index(f"{name}_{each.name}_key", made.c[each.name], unique=True, **where)
    elif Mark.UNIQUE_FOLDED in each.marks:
        Index(f"{name}_{folded(each)}_key", made.c[folded(each)], unique=True, **where)
    sorts = Mark.SORTABLE in each.marks and Mark.UNIQUE not in each.marks and each.name != "created_at"
    if (sorts or each.belongs_to) and each.name != _key(record)[0]:
        Index(f"{name}_{each.name}_idx", made.c[each.name], made.c.id, **where)


users = table(User)
addresses = table(Address)
products = table(Product)
products.append_constraint(CheckConstraint("stock >= 0", name="products_stock_check"))
orders = table(Order)
line_items = table(LineItem)
Index("orders_status_idx", orders.c.status, orders.c.id)

api_keys = table(ApiKey)
api_keys.append_column(Column("hash", BYTES_ORDERED, nullable=False))
Index("api_keys_hash_key", api_keys.c.hash, unique=True)

# The log that everything after the fact is read from. `xid` is the writing transaction on PostgreSQL, where
# `seq` alone would let a reader skip whoever commits late; on SQLite writers follow one another and it is 0.
events = Table(
    Event.plural,
    metadata,
    Column("seq", BIG, primary_key=True, autoincrement=True),
    Column("xid", BIG, nullable=False, server_default=text("0")),
    Column("id", BYTES_ORDERED, nullable=False),
    *[
        Column(each.name, BYTES_ORDERED, nullable=each.nullable)
        for each in members(Event)
        if each.name not in ("id", "specversion", "datacontenttype")
    ],
)
Index("events_id_key", events.c.id, unique=True)
Index("events_position_idx", events.c.xid, events.c.seq)
Index("events_subject_idx", events.c.subject, events.c.xid, events.c.seq)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("api_key_id", BYTES_ORDERED, primary_key=True),
    Column("key", BYTES_ORDERED, primary_key=True),
    Column("fingerprint", BYTES_ORDERED, nullable=False),
    Column("answer", BYTES_ORDERED),
    Column("expires_at", BYTES_ORDERED, nullable=False),
    sqlite_with_rowid=False,
)
Index("idempotency_keys_expires_at_idx", idempotency_keys.c.expires_at)

# GraphQL documents that were sent once and are named by their SHA-256 since.
persisted_queries = Table(
    "persisted_queries",
    metadata,
    Column("hash", BYTES_ORDERED, primary_key=True),
    Column("document", BYTES_ORDERED, nullable=False),
    Column("used_at", BYTES_ORDERED, nullable=False),
    sqlite_with_rowid=False,
)
Index("persisted_queries_used_at_idx", persisted_queries.c.used_at, persisted_queries.c.hash)

# What a foreign system calls an entity that was imported from it.
references = Table(
    "import_references",
    metadata,
    Column("kind", BYTES_ORDERED, primary_key=True),
    Column("reference", BYTES_ORDERED, primary_key=True),
    Column("entity_id", BYTES_ORDERED, nullable=False),
    sqlite_with_rowid=False,
)
Index("import_references_entity_id_idx", references.c.entity_id)
