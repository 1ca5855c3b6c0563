"""Persisted queries are kept by their hash, those used last, so many and no more."""

import asyncio
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config

from tests.conformance.store import ADD_USER, Store, user_row
from tests.service import Service
from tradepost import assembly
from tradepost.domain.user import User
from tradepost.settings import load
from tradepost.storage import migrations
from tradepost.storage.database import Row, Writing
from tradepost.storage.record_statements import statements_of
from tradepost.storage.statements import persisted_queries


@pytest.fixture
def store(engine: str, new_service: Callable[..., Service]) -> Store:
    """A database of its own for each test."""
    return Store(new_service(engine))


def _keep(store: Store, name: str, now: str, kept: int = 3) -> None:
    async def work(tx: Writing) -> None:
        await tx.run(persisted_queries.KEEP, hash=name, document=f"{{ {name} }}", now=now)
        await tx.run(persisted_queries.TRIM, kept=kept)

    store.write(work)


def _touch(store: Store, name: str, now: str) -> int:
    return store.write(lambda tx: tx.run(persisted_queries.TOUCH, at_hash=name, now=now))


def _found(store: Store, name: str) -> Row | None:
    return next(iter(store.read(persisted_queries.FIND, hash=name)), None)


def _kept(store: Store) -> list[str]:
    return [name for (name,) in store.rows("SELECT hash FROM persisted_queries ORDER BY hash")]


def test_a_document_is_found_by_its_hash(store: Store) -> None:
    """What was kept is found as it was, with the moment of its last use; another hash finds nothing."""
    document = "{ café(name: \"'🧭'\") }\n" * 1000

    async def work(tx: Writing) -> int:
        return await tx.run(persisted_queries.KEEP, hash="a", document=document, now="2026-01-01")

    assert store.write(work) == 1
    assert _found(store, "a") == (document, "2026-01-01")
    assert _found(store, "b") is None


def test_a_document_that_is_kept_again_is_touched(store: Store) -> None:
    """Keeping what is there changes only when it was last used; so does touching, which makes nothing."""
    _keep(store, "a", "2026-01-01")
    _keep(store, "a", "2026-01-02")
    assert _found(store, "a") == ("{ a }", "2026-01-02")
    assert _touch(store, "a", "2026-01-03") == 1
    assert _found(store, "a") == ("{ a }", "2026-01-03")
    assert _touch(store, "b", "2026-01-03") == 0
    assert _kept(store) == ["a"]


def test_those_used_last_are_kept(store: Store) -> None:
    """Beyond the bound the one goes that was not used for longest, whenever it came; none goes before that."""
    for day, name in enumerate("abc", 1):
        _keep(store, name, f"2026-01-0{day}")
    assert _kept(store) == ["a", "b", "c"]
    _touch(store, "a", "2026-01-04")
    _keep(store, "d", "2026-01-05")
    assert _kept(store) == ["a", "c", "d"]
    _keep(store, "e", "2026-01-06", kept=1)
    assert _kept(store) == ["e"]


def test_as_many_as_are_kept_at_once_stay_within_the_bound(store: Store) -> None:
    """Forty at the same moment, in as many transactions: the bound holds, and none of them fails."""

    def keep(n: int) -> Callable[[Writing], Any]:
        async def work(tx: Writing) -> None:
            await tx.run(persisted_queries.KEEP, hash=f"{n % 20}", document="{ a }", now="2026-01-01")
            await tx.run(persisted_queries.TRIM, kept=5)

        return work

    assert store.writes(*[keep(n) for n in range(40)]) == [None] * 40
    _keep(store, "last", "2026-01-02", kept=5)
    assert len(_kept(store)) == 5
    assert "last" in _kept(store)


def _first_schema(dialect: str) -> str:
    """The schema as the first version of tradepost made it, as SQL."""
    written = io.StringIO()
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.attributes |= {"dialect": dialect, "script": written}
    command.upgrade(config, "base:0001", sql=True)
    return written.getvalue()


@pytest.fixture
def empty(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The address of a database without anything in it."""
    if engine == "sqlite":
        return f"sqlite:///{tmp_path}/empty.db"
    url: str = request.getfixturevalue("postgres_empty")
    return url


def test_a_database_from_before_is_migrated(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database at the first schema gets what came since, and keeps its rows."""
    user = user_row()

    async def run() -> None:
        store = assembly.database(load({}, database_url=empty))
        await store.start()
        try:
            with monkeypatch.context() as patched:
                patched.setattr(migrations, "script", lambda dialect, since: _first_schema(dialect))
                await store.migrate()
            assert await store.schema_version() == "0001"
            await store.write(lambda tx: tx.run(ADD_USER, **user))
            await store.migrate()
            assert await store.schema_version() == migrations.head()
            row = await store.reading().row(statements_of(User).get, id=user["id"])
            assert row is not None
            given = {"hash": "a", "document": "{ a }", "now": "2026-01-01"}
            await store.write(lambda tx: tx.run(persisted_queries.KEEP, **given))
            found = await store.reading().row(persisted_queries.FIND, hash="a")
            assert found == ("{ a }", "2026-01-01")
        finally:
            await store.stop()

    asyncio.run(run())
