"""Every statement is taken by the engine it is for; what is written in SQL also by its console, as it stands."""

import asyncio
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import pytest

from tests.conformance.store import Store
from tradepost.catalogue import RESOURCES
from tradepost.domain.record import parents
from tradepost.storage import level, statements
from tradepost.storage.postgres import PostgresDatabase
from tradepost.storage.record_statements import Listing, statements_of
from tradepost.storage.sqlite import SqliteDatabase, connect
from tradepost.storage.statement import Statement

FOLDER = Path(statements.__file__).parent
MODULES = {
    each.name: importlib.import_module(f"{statements.__name__}.{each.name}")
    for each in pkgutil.iter_modules(statements.__path__)
}
PARAMETER = re.compile(r"(?<![:\w]):(\w+)")


class Written(NamedTuple):
    """A text of a `.sql` file; `engine` is empty if it is for both."""

    file: str
    name: str
    engine: str
    text: str


class Nothing(dict[str, Any]):
    """Null for every parameter."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> None:
        return None


def named() -> Iterator[tuple[str, Statement]]:
    """Those of the modules, by their names."""
    for noun, module in MODULES.items():
        for name, value in vars(module).items():
            found = value.values() if isinstance(value, dict) else [value]
            yield from [(f"{noun}.{name}", each) for each in found if isinstance(each, Statement)]


def derived() -> Iterator[tuple[str, Statement]]:
    """Those of every record and of what belongs to it."""
    for record in (resource.record for resource in RESOURCES):
        rows = statements_of(record)
        for each in (rows.get, rows.get_owned, rows.lock, rows.insert, rows.update, rows.delete):
            yield f"{record.kind}: {each.purpose}", each
        for descending in (False, True):
            yield f"{record.kind}: a page", rows.page(Listing(descending=descending, after=True, owned=True))
        yield f"{record.kind}: by ids", level.by_ids(record, owned=True)
        for key, _ in parents(record):
            below = (level.children, level.pages, level.counts)
            yield from [(f"{record.kind}: by {key.name}", make(record, key.name)) for make in below]


def written() -> Iterator[Written]:
    """Those of the `.sql` files."""
    for file in sorted(FOLDER.glob("*.sql")):
        for text in file.read_text("utf-8").split(";\n")[:-1]:
            head = re.match(r"\n?-- name: (\w+)(?: \((\w+)\))?\n", text)
            assert head, text
            yield Written(file.stem, head[1], head[2] or "", text)


@pytest.mark.parametrize("statement", [pytest.param(each, id=name) for name, each in (*named(), *derived())])
def test_every_statement_is_taken(store: Store, statement: Statement) -> None:
    """The engine explains what is sent to its driver."""
    database = store.database
    assert isinstance(database, SqliteDatabase | PostgresDatabase)
    sql, bind = database.compiled(statement)
    explain(store, sql, bind(Nothing()))


@pytest.mark.parametrize("one", [pytest.param(each, id=f"{each.file}.{each.name}") for each in written()])
def test_what_is_written_can_be_pasted(store: Store, one: Written) -> None:
    """With values in place of its parameters, the engine explains a text of a file as it stands there."""
    assert not re.search(r"[{}]|%[(a-z]", one.text)
    assert isinstance(getattr(MODULES[one.file], one.name.upper()), Statement)
    if one.engine in ("", store.database.name):
        explain(store, PARAMETER.sub("NULL", one.text), ())


def explain(store: Store, sql: str, values: tuple[Any, ...]) -> None:
    database = store.database
    if isinstance(database, SqliteDatabase):
        connection = connect(database.path)
        assert connection.execute(f"EXPLAIN {sql}", values).fetchall()
        connection.close()
    else:
        asyncio.run(explain_in_postgres(store.service.database_url, sql, len(values)))


async def explain_in_postgres(url: str, sql: str, count: int) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"PREPARE it AS {sql}")
        values = f"({', '.join(['NULL'] * count)})" if count else ""
        assert await connection.fetch(f"EXPLAIN EXECUTE it{values}")
    finally:
        await connection.close()
