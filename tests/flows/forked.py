"""The program in processes that are forked off one that has loaded it, which saves each the time that loading takes.

From the first line of `main` on they are what a shell starts: arguments, environment, streams and exit status are
their own. How the command itself starts is for the tests of that to show.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self, TextIO

from tradepost import __main__
from tradepost.cli.app import main

_SECONDS = 30
_CONTEXT = get_context("forkserver")
_LOADED = ("tradepost.cli.serve", "tradepost.cli.worker", "tradepost.cli.import_", "uvloop")
_CONTEXT.set_forkserver_preload([__name__, *_LOADED])


class Forked:
    """A running `tradepost`, and its streams."""

    def __init__(
        self, environment: dict[str, str], *arguments: str | Path, folder: Path | None = None
    ) -> None:
        readers, writers = zip(*(_CONTEXT.Pipe(duplex=False) for _ in range(3)), strict=True)
        streams = readers[0], *writers[1:]
        words = ["tradepost", *map(str, arguments)]
        self._process = _CONTEXT.Process(
            target=_run, args=(environment, words, folder or Path.cwd(), streams)
        )
        self._process.start()
        for each in streams:
            each.close()
        self.input, self.out, self.errors = _text(writers[0]), *map(_text, readers[1:])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self.input, self.out, self.errors):
            each.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def send(self, number: int) -> None:
        """Sends a signal, unless the process has ended."""
        with suppress(ProcessLookupError):
            if self._process.is_alive():
                os.kill(self.pid, number)

    def wait(self) -> int:
        """Waits for the end; the exit status, -n if signal n was it."""
        self._process.join(_SECONDS)
        assert self._process.exitcode is not None, "it does not end"
        return self._process.exitcode


def _text(pipe: Connection) -> TextIO:
    with pipe:
        return os.fdopen(os.dup(pipe.fileno()), "w" if pipe.writable else "r", encoding="utf-8")


def _run(environment: dict[str, str], words: list[str], folder: Path, streams: Sequence[Connection]) -> None:
    """What a shell and the interpreter do before the program begins."""
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdin, sys.argv, sys.modules["__main__"] = os.fdopen(0), words, __main__
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    main()
