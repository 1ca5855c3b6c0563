"""Text without case, for searching: PostgreSQL compares ours by bytes, and lowers ASCII alone there.

On SQLite the same function comes with each connection.
"""

from alembic import op

revision = "0003"
down_revision = "0002"

_FOLD = """
CREATE FUNCTION tradepost_fold(given text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT lower($1 COLLATE "{collation}")'
"""


def upgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        op.execute(
            f"""
            DO $do$ BEGIN
            IF EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu') THEN
                {_FOLD.format(collation="und-x-icu")};
            ELSE
                {_FOLD.format(collation="default")};
            END IF;
            END $do$
            """
        )
