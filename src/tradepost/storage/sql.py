"""Statements written in SQL, in the `.sql` files of `statements/`, which can be pasted into a console.

A statement begins with the line `-- name: <name>`, followed by `(sqlite)` or `(postgresql)` if the engines
need different texts. The next line says what the statement does. All parameters are `:named`; a list of texts
is one parameter.
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

    The `constants` replace the parameters with their names: a planner that does not know a small limit plans
    for a large one.
    """
    file, _, name = name.partition(".")
    texts = _texts(file)[name]
    purpose = next(iter(texts.values())).partition("\n")[0].removeprefix("-- ")
    clauses = {engine: text(_plain(each, constants)) for engine, each in texts.items()}
    return Statement(purpose, per_dialect(**clauses), bounded=bounded)


def _plain(body: str, constants: Mapping[str, int]) -> str:
    """The text for the driver: without comments, and with the constants."""
    for name, value in constants.items():
        body = re.sub(rf":{name}\b", str(value), body)
    return _COMMENT.sub("", body).strip(" \n;")


@cache
def _texts(file: str) -> dict[str, dict[str, str]]:
    """The texts of a file, by the name of the statement and by engine."""
    texts: dict[str, dict[str, str]] = {}
    _, *parts = _NAME.split((_FOLDER / f"{file}.sql").read_text("utf-8"))
    for name, engine, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        engines = [engine] if engine else ["sqlite", "postgresql"]
        texts.setdefault(name, {}).update(dict.fromkeys(engines, body))
    return texts
