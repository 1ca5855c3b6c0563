"""The command line as tests use it: in this process, on the database they name."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import text

from tradepost import assembly
from tradepost.cli.app import app
from tradepost.problems import Problem
from tradepost.settings import BadSetting, load
from tradepost.storage.statement import Statement


class Ended(NamedTuple):
    """How a command ended: its exit status, and what it said on both streams."""

    status: int
    out: str
    err: str


class Commands:
    """`tradepost`, on one database."""

    def __init__(
        self, url: str, capsys: pytest.CaptureFixture[str], set_: Callable[[str, str], None]
    ) -> None:
        self.url = url
        self._capsys = capsys
        self._set = set_

    def __call__(self, *words: str | Path) -> Ended:
        """Runs a command as the shell would."""
        self._set("TRADEPOST_DATABASE_URL", self.url)
        self._capsys.readouterr()
        status = _status([str(word) for word in words])
        out, err = self._capsys.readouterr()
        return Ended(status, out, err)

    def done(self, *words: str | Path) -> str:
        """What a command printed that has to succeed."""
        ended = self(*words)
        assert ended.status == 0, ended
        return ended.out

    def exported(self, what: str, folder: Path) -> list[dict[str, Any]]:
        """All there is of a kind."""
        file = folder / f"{what}-{len(list(folder.iterdir()))}.jsonl"
        self.done("export", what, file)
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def _status(words: list[str]) -> int:
    try:
        ended = app(words, result_action="return_value", exit_on_error=False)
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else 1
    except (BadSetting, Problem):
        return 1
    return ended if isinstance(ended, int) else 0


@pytest.fixture
def commands(
    new_database: Callable[[str], str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Commands]:
    """The command line on a new database of the engine named."""
    for name in os.environ:
        if name.startswith("TRADEPOST_"):
            monkeypatch.delenv(name)
    return lambda engine: Commands(new_database(engine), capsys, monkeypatch.setenv)


@pytest.fixture
def tradepost(engine: str, commands: Callable[[str], Commands]) -> Commands:
    """The command line on a new database of each engine in turn."""
    return commands(engine)


def asked(url: str, sql: str) -> list[tuple[Any, ...]]:
    """What a database answers."""

    async def answer() -> list[tuple[Any, ...]]:
        database = assembly.database(load({}, database_url=url))
        await database.start()
        try:
            return await database.reading().rows(Statement("what a test asks", text(sql), bounded=False))
        finally:
            await database.stop()

    return asyncio.run(answer())
