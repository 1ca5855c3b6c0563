"""The schema that migrations make is the one that the records declare, on both engines."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import CheckConstraint, Connection, create_engine, inspect, text
from sqlalchemy.ext.asyncio import create_async_engine

from tradepost import catalogue
from tradepost.assembly import database
from tradepost.settings import load
from tradepost.storage import migrations
from tradepost.storage.tables import metadata

DECLARED = {
    *(each.record.plural for each in catalogue.RESOURCES),
    "idempotency_keys",
    "import_references",
    "persisted_queries",
    "webhook_subscriptions",
}


def _on(url: str, look: Callable[[Connection], Any]) -> Any:
    """What `look` finds over a connection of SQLAlchemy's own."""
    if url.startswith("sqlite"):
        engine = create_engine(url)
        with engine.connect() as connection:
            found = look(connection)
        engine.dispose()
        return found

    async def asked() -> Any:
        engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://", 1))
        async with engine.connect() as connection:
            found = await connection.run_sync(look)
        await engine.dispose()
        return found

    return asyncio.run(asked())


def _is_ours(item: Any, name: str | None, kind: str, reflected: bool, compare_to: Any) -> bool:
    """A record that a test declares has a table in the metadata too, but no migration."""
    table = name if kind == "table" else item.table.name
    return table in DECLARED or (reflected and table != "alembic_version")


@pytest.fixture
def url(engine: str, new_database: Callable[[str], str]) -> str:
    """A database that nobody else has open."""
    return new_database(engine)


def test_migrations_make_what_records_declare(url: str) -> None:
    """Alembic finds no difference between the migrated schema and the tables: columns, types, nulls, indexes, keys."""

    def differences(connection: Connection) -> list[Any]:
        options = {"compare_type": True, "include_object": _is_ours}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))

    assert _on(url, differences) == []


def test_migrations_keep_primary_keys_and_checks(url: str) -> None:
    """What Alembic does not compare is as declared as well: primary keys, foreign keys, and the floor of stock."""

    def found(connection: Connection) -> dict[str, Any]:
        inspector = inspect(connection)
        tables = [name for name in inspector.get_table_names() if name != "alembic_version"]
        return {
            name: (
                inspector.get_pk_constraint(name)["constrained_columns"],
                sorted(
                    (key["constrained_columns"], key["referred_table"])
                    for key in inspector.get_foreign_keys(name)
                ),
                sorted(str(check["name"]) for check in inspector.get_check_constraints(name)),
            )
            for name in tables
        }

    made = _on(url, found)
    for name, (primary, foreign, checks) in made.items():
        table = metadata.tables[name]
        assert primary == [column.name for column in table.primary_key]
        assert foreign == sorted(([key.parent.name], key.column.table.name) for key in table.foreign_keys)
        assert checks == sorted(
            str(each.name) for each in table.constraints if isinstance(each, CheckConstraint)
        )
    assert {resource.record.plural for resource in catalogue.RESOURCES} <= set(made)


def test_texts_are_compared_by_bytes_on_postgresql(new_database: Callable[[str], str]) -> None:
    """Every text column has the collation C, whatever the database's own is."""

    def others(connection: Connection) -> list[Any]:
        asked = (
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
            " AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'"
        )
        return [tuple(row) for row in connection.execute(text(asked))]

    assert _on(new_database("postgresql"), others) == []


def test_migrating_again_changes_nothing(url: str) -> None:
    """A schema that is up to date stays as it is, its rows too, however often it is migrated."""

    async def again() -> str | None:
        store = database(load({}, database_url=url))
        await store.start()
        try:
            for _ in range(2):
                await store.migrate()
            return await store.schema_version()
        finally:
            await store.stop()

    assert asyncio.run(again()) == migrations.head()
