"""Webhooks: endpoints, their secrets, what they want to hear of, deliveries and redeliveries."""

from typing import Any

import sqlalchemy
from alembic import op
from sqlalchemy import ForeignKey

from tradepost.storage.migrations.columns import integer, text

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    _endpoints()
    _deliveries()
    _redeliveries()


def _endpoints() -> None:
    op.create_table(
        "webhook_endpoints",
        text("id", primary_key=True),
        text("url"),
        text("description", nullable=True),
        text("event_types"),
        text("content_type"),
        text("status"),
        text("disabled_reason", nullable=True),
        text("created_at"),
        text("updated_at"),
        integer("version"),
        text("deleted_at", nullable=True),
        text("failing_since", nullable=True),
        text("failed_at", nullable=True),
        sqlite_with_rowid=False,
    )
    _index("webhook_endpoints", ["updated_at", "id"], where="deleted_at IS NULL")
    op.create_table(
        "webhook_secrets",
        text("id", primary_key=True),
        text("endpoint_id", ForeignKey("webhook_endpoints.id")),
        text("status"),
        text("retired_at", nullable=True),
        text("created_at"),
        integer("version"),
        text("sealed", nullable=True),
        integer("confirmed"),
        integer("needed"),
        sqlite_with_rowid=False,
    )
    _index("webhook_secrets", ["endpoint_id", "id"])
    op.create_table(
        "webhook_subscriptions",
        text("pattern", primary_key=True),
        text("endpoint_id", primary_key=True),
        sqlite_with_rowid=False,
    )
    _index("webhook_subscriptions", ["endpoint_id"])


def _deliveries() -> None:
    op.create_table(
        "webhook_deliveries",
        text("id", primary_key=True),
        text("endpoint_id"),
        text("event_id", nullable=True),
        text("event_type"),
        text("status"),
        text("attempts"),
        text("next_attempt_at", nullable=True),
        text("redelivery_id", nullable=True),
        text("created_at"),
        text("updated_at"),
        integer("version"),
        integer("attempt"),
        integer("later"),
        text("lease", nullable=True),
        text("leased_until", nullable=True),
        text("source", nullable=True),
        sqlite_with_rowid=False,
    )
    _index(
        "webhook_deliveries",
        ["endpoint_id", "later", "next_attempt_at"],
        "due",
        where="next_attempt_at IS NOT NULL AND lease IS NULL",
    )
    _index("webhook_deliveries", ["endpoint_id", "later"], "leased", where="lease IS NOT NULL")
    _index("webhook_deliveries", ["endpoint_id", "id"])
    _index("webhook_deliveries", ["event_id", "id"])
    _index("webhook_deliveries", ["status", "id"])
    _index(
        "webhook_deliveries",
        ["redelivery_id", "id"],
        where="redelivery_id IS NOT NULL",
    )


def _redeliveries() -> None:
    op.create_table(
        "webhook_redeliveries",
        text("id", primary_key=True),
        text("endpoint_id"),
        text("from_"),
        text("to", nullable=True),
        text("event_types", nullable=True),
        text("status", nullable=True),
        integer("made"),
        text("finished_at", nullable=True),
        text("created_at"),
        integer("version"),
        text("position"),
        sqlite_with_rowid=False,
    )
    _index("webhook_redeliveries", ["id"], "unfinished", where="finished_at IS NULL")
    _index("webhook_redeliveries", ["endpoint_id", "id"])


def _index(table: str, columns: list[str], name: str | None = None, *, where: str | None = None) -> None:
    only: dict[str, Any] = {}
    if where is not None:
        condition = sqlalchemy.text(where)
        only = {"sqlite_where": condition, "postgresql_where": condition}
    op.create_index(f"{table}_{name or columns[0]}_idx", table, columns, **only)
