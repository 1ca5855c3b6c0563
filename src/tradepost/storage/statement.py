"""A statement: SQLAlchemy Core, named and with its purpose, compiled once for each dialect.

What reaches the driver is plain SQL and a tuple of plain values; SQLAlchemy is not on the path of a request.
"""

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import BindParameter, ColumnElement, bindparam, null, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import asyncpg
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement

_NARROWED_KEPT = 64

Bind = Callable[[Mapping[str, Any]], tuple[Any, ...]]


class Compiled(NamedTuple):
    """What the driver gets: the SQL, and how to lay parameters into their places."""

    sql: str
    bind: Bind


class Statement:
    """One SQL statement. `bounded` says that it touches few rows over an index, however large the table."""

    __slots__ = ("_narrowed", "bounded", "clause", "compiled", "purpose")

    def __init__(self, purpose: str, clause: ClauseElement, *, bounded: bool = True) -> None:
        self.purpose = purpose
        self.clause = clause
        self.bounded = bounded
        self.compiled: dict[str, Compiled] = {}  # by engine
        self._narrowed: dict[frozenset[int], Statement] = {}

    def narrowed(self, columns: frozenset[int]) -> "Statement":
        """The same, with null in place of every column that is not at one of these positions."""
        found = self._narrowed.get(columns)
        if found is None:
            if len(self._narrowed) >= _NARROWED_KEPT:
                self._narrowed.clear()
            clause: Any = self.clause
            kept = [c if i in columns else null() for i, c in enumerate(clause.selected_columns)]
            chosen = clause.with_only_columns(*kept, maintain_column_froms=True)
            found = self._narrowed[columns] = Statement(self.purpose, chosen, bounded=self.bounded)
        return found

    def __repr__(self) -> str:
        return f"<Statement: {self.purpose}>"


class among(ColumnElement[bool]):  # noqa: N801 (reads as SQL does, beside `and_` and `select`)
    """`column` is one of a list of texts, given as one parameter whatever its length."""

    inherit_cache = True

    def __init__(self, column: ColumnElement[Any], name: str) -> None:
        self.column = column
        self.texts: BindParameter[Any] = bindparam(name)


@compiles(among, "sqlite")
def _among_sqlite(element: among, compiler: SQLCompiler, **kwargs: Any) -> str:
    column, texts = compiler.process(element.column, **kwargs), compiler.process(element.texts, **kwargs)
    return f"{column} IN (SELECT value FROM json_each({texts}))"  # noqa: S608 (made of compiled parts)


@compiles(among, "postgresql")
def _among_postgres(element: among, compiler: SQLCompiler, **kwargs: Any) -> str:
    column, texts = compiler.process(element.column, **kwargs), compiler.process(element.texts, **kwargs)
    return f"{column} = ANY({texts}::text[])"


class either(ColumnElement[bool]):  # noqa: N801 (reads as SQL does)
    """A condition that means the same on both engines, where each seeks an index by another form of it."""

    inherit_cache = False

    def __init__(self, *, sqlite: ColumnElement[bool], postgresql: ColumnElement[bool]) -> None:
        self.sqlite = sqlite
        self.postgresql = postgresql


@compiles(either, "sqlite")
def _either_sqlite(element: either, compiler: SQLCompiler, **kwargs: Any) -> str:
    return compiler.process(element.sqlite, **kwargs)


@compiles(either, "postgresql")
def _either_postgres(element: either, compiler: SQLCompiler, **kwargs: Any) -> str:
    return compiler.process(element.postgresql, **kwargs)


class spelled(ClauseElement):  # noqa: N801 (reads as SQL does, beside `text`)
    """SQL as it is written, with lists of texts as parameters: `id {any}ids{end}` is one of `:ids`.

    `{any_of}SELECT …{end_of}` is one of what a query finds, found first and then looked up by an index. Where
    an engine needs other words for the same, it is given them.
    """

    inherit_cache = False

    def __init__(self, template: str, **others: Mapping[str, str]) -> None:
        self.template = template
        self.others = others


_WORDS = {
    "sqlite": {"any": "IN (SELECT value FROM json_each(:", "end": "))", "any_of": "IN (", "end_of": ")"},
    "postgresql": {
        "any": "= ANY(CAST(:",
        "end": " AS text[]))",
        "any_of": "= ANY(ARRAY(",
        "end_of": "))",
    },
}


@compiles(spelled)
def _spelled(element: spelled, compiler: SQLCompiler, **kwargs: Any) -> str:
    engine = compiler.dialect.name
    template = element.template.format(**_WORDS[engine], **element.others.get(engine, {}))
    return compiler.process(text(template), **kwargs)


class settled(ColumnElement[bool]):  # noqa: N801 (reads as SQL does)
    """An event was written by a transaction before which none runs any more; see the event log."""

    inherit_cache = True


@compiles(settled, "sqlite")
def _settled_sqlite(_element: settled, _compiler: SQLCompiler, **_kwargs: Any) -> str:
    return "true"


@compiles(settled, "postgresql")
def _settled_postgres(_element: settled, _compiler: SQLCompiler, **_kwargs: Any) -> str:
    return "events.xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint"


SQLITE: Dialect = sqlite.dialect(paramstyle="qmark")
POSTGRES: Dialect = asyncpg.dialect()  # type: ignore[no-untyped-call]
vars(POSTGRES)["_backslash_escapes"] = False  # standard strings; normally read off a connection


def compile_statement(statement: Statement, dialect: Dialect) -> Compiled:
    """The statement as the dialect's driver wants it."""
    compiled: Any = statement.clause.compile(dialect=dialect)
    sql, names = str(compiled), tuple(compiled.positiontup or ())
    fixed = {name: value for name, value in compiled.params.items() if value is not None}
    return Compiled(sql, _binder(names, fixed, json_lists="json_each(" in sql))


def _binder(names: tuple[str, ...], fixed: Mapping[str, Any], *, json_lists: bool) -> Bind:
    """Lays named values into positions; SQLite takes a list as one JSON text."""
    if json_lists:
        return lambda given: tuple(
            [_json_list(given[name] if name in given else fixed[name]) for name in names]
        )
    if fixed.keys() & names:
        return lambda given: tuple([given[name] if name in given else fixed[name] for name in names])
    if len(names) > 1:
        return itemgetter(*names)
    return lambda given: tuple([given[name] for name in names])


def _json_list(value: Any) -> Any:
    return msgspec.json.encode(value).decode() if type(value) is list else value
