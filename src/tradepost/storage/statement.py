"""A statement: a SQLAlchemy Core clause with its purpose, compiled once for each dialect.

The driver gets plain SQL and a tuple of plain values; SQLAlchemy is not on the path of a request.
"""

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import ARRAY, ColumnElement, Integer, Text, any_, bindparam, cast, literal_column, null, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import asyncpg
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement

_MAX_PROJECTIONS = 64

# A constant of a statement: written into the SQL, not bound with each call.
ONE = literal_column("1", Integer)

Bind = Callable[[Mapping[str, Any]], tuple[Any, ...]]


class Compiled(NamedTuple):
    """The SQL for the driver, and a function that puts named parameters into its order."""

    sql: str
    bind: Bind


class Statement:
    """One SQL statement. A `bounded` one reads few rows by an index, regardless of the size of the table."""

    __slots__ = ("_projected", "bounded", "clause", "compiled", "purpose")

    def __init__(self, purpose: str, clause: ClauseElement, *, bounded: bool = True) -> None:
        self.purpose = purpose
        self.clause = clause
        self.bounded = bounded
        self.compiled: dict[str, Compiled] = {}  # by engine
        self._projected: dict[frozenset[int], Statement] = {}

    def projected(self, columns: frozenset[int]) -> "Statement":
        """The same statement with null instead of every column that is not at one of these positions."""
        projected = self._projected.get(columns)
        if projected is None:
            if len(self._projected) >= _MAX_PROJECTIONS:
                self._projected.clear()
            clause: Any = self.clause
            selected = [c if i in columns else null() for i, c in enumerate(clause.selected_columns)]
            chosen = clause.with_only_columns(*selected, maintain_column_froms=True)
            projected = self._projected[columns] = Statement(self.purpose, chosen, bounded=self.bounded)
        return projected

    def __repr__(self) -> str:
        return f"<Statement: {self.purpose}>"


class per_dialect(ColumnElement[Any]):  # noqa: N801 (in the style of `and_` and `select`)
    """An expression with the same meaning on both engines, written differently for each."""

    inherit_cache = False

    def __init__(self, *, sqlite: ClauseElement, postgresql: ClauseElement) -> None:
        self.clauses = {"sqlite": sqlite, "postgresql": postgresql}


@compiles(per_dialect)
def _per_dialect(element: per_dialect, compiler: SQLCompiler, **kwargs: Any) -> str:
    return compiler.process(element.clauses[compiler.dialect.name], **kwargs)


def in_list(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """Whether `column` is in a list of texts. The list is one parameter, `name`, regardless of its length."""
    return per_dialect(
        sqlite=column.in_(text(f"SELECT value FROM json_each(:{name})")),  # noqa: S608 (the name is a constant)
        postgresql=column == any_(cast(bindparam(name), ARRAY(Text))),
    )


def below_horizon() -> ColumnElement[bool]:
    """Whether an event is final: no running transaction can still write an event before it."""
    return per_dialect(
        sqlite=literal_column("true"),
        postgresql=literal_column("events.xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint"),
    )


SQLITE: Dialect = sqlite.dialect(paramstyle="qmark")
POSTGRES: Dialect = asyncpg.dialect()  # type: ignore[no-untyped-call]
vars(POSTGRES)["_backslash_escapes"] = False  # standard strings; SQLAlchemy normally asks a connection


def compile_statement(statement: Statement, dialect: Dialect, binder: "Binder | None" = None) -> Compiled:
    """The statement in the form that the driver of the dialect takes."""
    compiled: Any = statement.clause.compile(dialect=dialect)
    sql, names = str(compiled), tuple(compiled.positiontup or ())
    fixed = {name: value for name, value in compiled.params.items() if value is not None}
    return Compiled(sql, (binder or positional)(sql, names, fixed))


Binder = Callable[[str, tuple[str, ...], Mapping[str, Any]], Bind]


def positional(sql: str, names: tuple[str, ...], fixed: Mapping[str, Any]) -> Bind:
    """A function that puts named values into positions; `fixed` are values of the statement itself."""
    del sql
    if fixed.keys() & names:
        return lambda values: tuple([values[name] if name in values else fixed[name] for name in names])
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple([values[name] for name in names])
