"""The first schema."""

from typing import Any

from alembic import op
from sqlalchemy import CheckConstraint, ForeignKey, PrimaryKeyConstraint
from sqlalchemy import text as sql

from tradepost.storage.migrations.columns import integer, text

revision = "0001"
down_revision = None

_SEEN = sql("deleted_at IS NULL")


def upgrade() -> None:
    _people()
    _goods()
    _doors()
    _log()


def _people() -> None:
    op.create_table(
        "users",
        text("id", primary_key=True),
        text("name"),
        text("email"),
        text("email_key"),
        text("status"),
        text("created_at"),
        text("updated_at"),
        integer("version"),
        text("deleted_at", nullable=True),
        sqlite_with_rowid=False,
    )
    _index("users", "name", seen=True)
    _index("users", "email", seen=True)
    _index("users", "updated_at", seen=True)
    _unique("users", "email_key", seen=True)
    op.create_table(
        "addresses",
        text("id", primary_key=True),
        text("user_id", ForeignKey("users.id")),
        text("recipient"),
        text("line1"),
        text("line2", nullable=True),
        text("city"),
        text("region", nullable=True),
        text("postal_code"),
        text("country"),
        text("created_at"),
        text("updated_at"),
        integer("version"),
        sqlite_with_rowid=False,
    )
    _index("addresses", "user_id")
    _index("addresses", "updated_at")


def _goods() -> None:
    op.create_table(
        "products",
        text("id", primary_key=True),
        text("sku"),
        text("name"),
        text("description", nullable=True),
        integer("price"),
        text("currency"),
        integer("stock", nullable=True),
        text("status"),
        text("created_at"),
        text("updated_at"),
        integer("version"),
        text("deleted_at", nullable=True),
        CheckConstraint("stock >= 0", name="products_stock_check"),
        sqlite_with_rowid=False,
    )
    _unique("products", "sku", seen=True)
    _index("products", "name", seen=True)
    _index("products", "price", seen=True)
    _index("products", "updated_at", seen=True)
    op.create_table(
        "orders",
        text("id", primary_key=True),
        text("user_id", ForeignKey("users.id")),
        text("status"),
        text("currency"),
        integer("total"),
        text("shipping_address_id", nullable=True),
        text("shipping_address", nullable=True),
        text("created_at"),
        text("updated_at"),
        integer("version"),
        sqlite_with_rowid=False,
    )
    for column in ("user_id", "status", "total", "updated_at"):
        _index("orders", column)
    op.create_table(
        "line_items",
        text("id"),
        text("order_id", ForeignKey("orders.id")),
        text("product_id", ForeignKey("products.id")),
        integer("quantity"),
        text("sku"),
        text("name"),
        integer("unit_price"),
        text("currency"),
        integer("total"),
        text("created_at"),
        text("updated_at"),
        integer("version"),
        PrimaryKeyConstraint("order_id", "id"),
        sqlite_with_rowid=False,
    )
    _unique("line_items", "id")
    for column in ("product_id", "updated_at"):
        _index("line_items", column)


def _doors() -> None:
    op.create_table(
        "api_keys",
        text("id", primary_key=True),
        text("name"),
        text("scopes"),
        text("user_id", ForeignKey("users.id"), nullable=True),
        text("expires_at", nullable=True),
        text("prefix"),
        text("last_used_at", nullable=True),
        text("revoked_at", nullable=True),
        text("created_at"),
        integer("version"),
        text("hash"),
        sqlite_with_rowid=False,
    )
    _index("api_keys", "user_id")
    _unique("api_keys", "hash")
    op.create_table(
        "idempotency_keys",
        text("api_key_id", primary_key=True),
        text("key", primary_key=True),
        text("fingerprint"),
        text("answer", nullable=True),
        text("expires_at"),
        sqlite_with_rowid=False,
    )
    op.create_index("idempotency_keys_expires_at_idx", "idempotency_keys", ["expires_at"])


def _log() -> None:
    # Which transaction wrote an event is known to PostgreSQL alone; SQLite's writers follow one another.
    postgres = op.get_context().dialect.name == "postgresql"
    written_by = sql("pg_current_xact_id()::text::bigint" if postgres else "0")
    op.create_table(
        "events",
        integer("seq", primary_key=True, autoincrement=True),
        integer("xid", server_default=written_by),
        text("id"),
        text("source"),
        text("type"),
        text("subject"),
        text("time"),
        text("dataschema"),
        text("data"),
        text("traceparent", nullable=True),
    )
    _unique("events", "id")
    op.create_index("events_position_idx", "events", ["xid", "seq"])
    op.create_index("events_subject_idx", "events", ["subject", "xid", "seq"])
    op.create_table(
        "import_references",
        text("kind", primary_key=True),
        text("reference", primary_key=True),
        text("entity_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("import_references_entity_id_idx", "import_references", ["entity_id"])


def _index(table: str, column: str, *, seen: bool = False) -> None:
    only: dict[str, Any] = {"sqlite_where": _SEEN, "postgresql_where": _SEEN} if seen else {}
    op.create_index(f"{table}_{column}_idx", table, [column, "id"], **only)


def _unique(table: str, column: str, *, seen: bool = False) -> None:
    only: dict[str, Any] = {"sqlite_where": _SEEN, "postgresql_where": _SEEN} if seen else {}
    op.create_index(f"{table}_{column}_key", table, [column], unique=True, **only)
