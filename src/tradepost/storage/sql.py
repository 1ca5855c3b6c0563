"""Statements that are written in SQL, in the `.sql` files of `statements/`, as a console takes them.

A statement begins with the line `-- name: <name>`; `(sqlite)` or `(postgresql)` follows the name where the
engines need different texts. The next line says what the statement does. All parameters are `:named`; a list
of texts is one parameter.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from sqlalchemy import text

from tradepost.storage.statement import Statement, per_dialect

_FOLDER = Path(__file__).with_name("statements")
_NAME = re.compile(r"^-- name: (\w+)(?: \((\w+)\))?\n", re.MULTILINE)
_COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)


def sql(name: str, *, bounded: bool = True, **constants: int) -> Statement:
    """The statement with the name `<file>.<name>`. Raises `KeyError` if there is none.

    The `constants` are written in place of the parameters with their names: a planner that does not know how
    small a limit is plans for a large one, each time anew.
    """
    file, _, name = name.partition(".")
    texts = _texts(file)[name]
    purpose = next(iter(texts.values())).partition("\n")[0].removeprefix("-- ")
    clauses = {engine: text(_plain(each, constants)) for engine, each in texts.items()}
    return Statement(purpose, per_dialect(**clauses), bounded=bounded)


def _plain(body: str, constants: Mapping[str, int]) -> str:
    """What the driver gets: without comments, and with the constants."""
    for name, value in constants.items():
        body = re.sub(rf":{name}\b", str(value), body)
    return _COMMENT.sub("", body).strip(" \n;")


@cache
def _texts(file: str) -> dict[str, dict[str, str]]:
    """The texts of a file, by the name of the statement and by engine."""
    found: dict[str, dict[str, str]] = {}
    _, *parts = _NAME.split((_FOLDER / f"{file}.sql").read_text("utf-8"))
    for name, engine, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        engines = [engine] if engine else ["sqlite", "postgresql"]
        found.setdefault(name, {}).update(dict.fromkeys(engines, body))
    return found
