"""The tables: those of the records are derived from the records, the others are defined here.

Every column is text or a 64-bit integer on both engines, so that rows need no conversion. Text compares by
bytes on both (PostgreSQL: collation "C").
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
from tradepost.domain.webhook_delivery import WebhookDelivery
from tradepost.domain.webhook_endpoint import WebhookEndpoint
from tradepost.domain.webhook_redelivery import WebhookRedelivery
from tradepost.domain.webhook_secret import WebhookSecret

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
        info={"record": record},
    )
    if len(made.primary_key.columns) > 1:
        Index(f"{record.plural}_id_key", made.c.id, unique=True)
    for each in members(record):
        _index(made, record, each)
    return made


def _key(record: type[Record]) -> tuple[str, ...]:
    """The primary key. That of embedded children starts with the parent, so that siblings are adjacent."""
    above = next((key.name for key, link in parents(record) if link.embedded), None)
    return ("id",) if above is None else (above, "id")


def folded(member: Member) -> str:
    """The column that holds a member case-folded."""
    return f"{member.name}_key"


def member_at(table_name: str, column: str) -> tuple[str, str]:
    """What the rows of a table are called, and the member that a column holds."""
    record: type[Record] | None = metadata.tables[table_name].info.get("record")
    if record is None:
        return "item", column
    name = next((each.name for each in members(record) if folded(each) == column), column)
    return record.kind.replace("_", " "), name


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
    """Adds the index of a unique member, a foreign key or a sortable member; `createdAt` sorts by the id."""
    name, visible = record.plural, text("deleted_at IS NULL") if record.hides_deleted else None
    where: dict[str, Any] = {} if visible is None else {"sqlite_where": visible, "postgresql_where": visible}
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

# The log of events. `xid` is the writing transaction on PostgreSQL, where a reader that used `seq` alone
# would skip events that are committed late. On SQLite, where writers run one after another, it is 0.
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

# `failing_since` is the start of the present series of failures, `failed_at` the last failure recorded in it.
webhook_endpoints = table(WebhookEndpoint)
webhook_endpoints.append_column(Column("failing_since", BYTES_ORDERED))
webhook_endpoints.append_column(Column("failed_at", BYTES_ORDERED))

# For a retiring secret: the number of deliveries in a row `confirmed` without it, and of those that `needed`
# it.
webhook_secrets = table(WebhookSecret)
webhook_secrets.append_column(Column("sealed", BYTES_ORDERED))
webhook_secrets.append_column(Column("confirmed", BIG, nullable=False))
webhook_secrets.append_column(Column("needed", BIG, nullable=False))

# The subscriptions of enabled endpoints: one row for each pattern of event types.
webhook_subscriptions = Table(
    "webhook_subscriptions",
    metadata,
    Column("pattern", BYTES_ORDERED, primary_key=True),
    Column("endpoint_id", BYTES_ORDERED, primary_key=True),
    sqlite_with_rowid=False,
)
Index("webhook_subscriptions_endpoint_id_idx", webhook_subscriptions.c.endpoint_id)

# `attempt` is the number of the next attempt; `later` is its queue: 0 for first attempts, 1 for retries, 2
# for redeliveries. `lease` names the worker that claimed the delivery until `leased_until`. `source` is set
# for pings only, which have no event.
webhook_deliveries = table(WebhookDelivery)
for _column in (
    Column("attempt", BIG, nullable=False),
    Column("later", BIG, nullable=False),
    Column("lease", BYTES_ORDERED),
    Column("leased_until", BYTES_ORDERED),
    Column("source", BYTES_ORDERED),
):
    webhook_deliveries.append_column(_column)
_d = webhook_deliveries.c
# Not by status: a planner that expects few pending deliveries would scan all of them.
DUE = text("next_attempt_at IS NOT NULL AND lease IS NULL")
LEASED = text("lease IS NOT NULL")
Index(
    "webhook_deliveries_due_idx",
    *(_d.endpoint_id, _d.later, _d.next_attempt_at),
    sqlite_where=DUE,
    postgresql_where=DUE,
)
Index("webhook_deliveries_leased_idx", _d.endpoint_id, _d.later, sqlite_where=LEASED, postgresql_where=LEASED)
Index("webhook_deliveries_endpoint_id_idx", _d.endpoint_id, _d.id)
Index("webhook_deliveries_event_id_idx", _d.event_id, _d.id)
Index("webhook_deliveries_status_idx", _d.status, _d.id)
_MADE_BY = text("redelivery_id IS NOT NULL")
Index(
    "webhook_deliveries_redelivery_id_idx",
    *(_d.redelivery_id, _d.id),
    sqlite_where=_MADE_BY,
    postgresql_where=_MADE_BY,
)

# `position` is the id of the last event that was examined.
webhook_redeliveries = table(WebhookRedelivery)
webhook_redeliveries.append_column(Column("position", BYTES_ORDERED, nullable=False))
_UNFINISHED = text("finished_at IS NULL")
Index(
    "webhook_redeliveries_unfinished_idx",
    webhook_redeliveries.c.id,
    sqlite_where=_UNFINISHED,
    postgresql_where=_UNFINISHED,
)
Index("webhook_redeliveries_endpoint_id_idx", webhook_redeliveries.c.endpoint_id, webhook_redeliveries.c.id)

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

# GraphQL documents that clients have sent once and then refer to by SHA-256.
persisted_queries = Table(
    "persisted_queries",
    metadata,
    Column("hash", BYTES_ORDERED, primary_key=True),
    Column("document", BYTES_ORDERED, nullable=False),
    Column("used_at", BYTES_ORDERED, nullable=False),
    sqlite_with_rowid=False,
)
Index("persisted_queries_used_at_idx", persisted_queries.c.used_at, persisted_queries.c.hash)

# The names that other systems use for entities imported from them.
references = Table(
    "import_references",
    metadata,
    Column("kind", BYTES_ORDERED, primary_key=True),
    Column("reference", BYTES_ORDERED, primary_key=True),
    Column("entity_id", BYTES_ORDERED, nullable=False),
    sqlite_with_rowid=False,
)
Index("import_references_entity_id_idx", references.c.entity_id)
