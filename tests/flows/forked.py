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
from typing import TextIO

from tradepost import __main__
from tradepost.cli.app import main

_SECONDS = 30
_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__, "tradepost.cli.serve", "tradepost.cli.worker", "uvloop"])


class Forked:
    """A running `tradepost`, and what it says on both streams."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        out, to_out = _CONTEXT.Pipe(duplex=False)
        errors, to_errors = _CONTEXT.Pipe(duplex=False)
        with to_out, to_errors:
            self._process = _CONTEXT.Process(target=_run, args=(environment, arguments, to_out, to_errors))
            self._process.start()
        self.out, self.errors = _text(out), _text(errors)

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


def _text(reader: Connection) -> TextIO:
    with reader:
        return os.fdopen(os.dup(reader.fileno()), encoding="utf-8")


def _run(environment: dict[str, str], arguments: Sequence[str], out: Connection, errors: Connection) -> None:
    """What a shell and the interpreter do before the program begins."""
    with Path(os.devnull).open() as nothing, out, errors:
        for number, file in enumerate((nothing.fileno(), out.fileno(), errors.fileno())):
            os.dup2(file, number)
    sys.stdin = os.fdopen(0)
    sys.argv = ["tradepost", *arguments]
    sys.modules["__main__"] = __main__
    os.environ.clear()
    os.environ.update(environment)
    main()
