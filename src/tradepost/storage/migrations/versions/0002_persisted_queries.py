"""GraphQL documents that are named by their hash."""

from alembic import op

from tradepost.storage.migrations.columns import text

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "persisted_queries",
        text("hash", primary_key=True),
        text("document"),
        text("used_at"),
        sqlite_with_rowid=False,
    )
    op.create_index("persisted_queries_used_at_idx", "persisted_queries", ["used_at", "hash"])
