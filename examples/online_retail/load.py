"""load: convert the source, then migrate a database and import everything, with the time of each step."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .convert import IMPORTS, add_source, convert


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(prog="python -m examples.online_retail load", description=__doc__)
    add_source(parser)
    parser.add_argument("--database-url", required=True, metavar="URL", help="as in TRADEPOST_DATABASE_URL")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep the converted files here")
    chosen: Namespace = parser.parse_intermixed_args(arguments)
    with tempfile.TemporaryDirectory() as scratch, timed("total"):
        load(chosen.source, chosen.database_url, chosen.out or Path(scratch))
    return 0


def load(source: Path, database_url: str, out: Path) -> None:
    """Stops at the first step that fails, with SystemExit."""
    tradepost = command()
    with timed("convert"):
        print(convert(source, out), end="\n\n")
    environment = {**os.environ, "TRADEPOST_DATABASE_URL": database_url}
    with timed("migrate"):
        run([tradepost, "migrate"], environment)
    for kind, file in IMPORTS.items():
        with timed(f"import {kind}"):
            run([tradepost, "import", kind, str(out / file)], environment)


@contextmanager
def timed(step: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    print(f"{step:<24}{time.perf_counter() - started:14.1f} s", flush=True)


def run(words: Sequence[str], environment: dict[str, str]) -> None:
    # S603 warns of words from strangers: these are this module's own, and no shell reads them.
    code = subprocess.run(words, env=environment, check=False).returncode  # noqa: S603
    if code:
        sys.exit(f"stopped: {' '.join(words)} ended with exit code {code}")


def command() -> str:
    """The `tradepost` of this environment, else the one on the path."""
    here = str(Path(sys.executable).with_name("tradepost"))
    if found := shutil.which(here) or shutil.which("tradepost"):
        return found
    sys.exit("there is no tradepost command beside this Python or on the path: run `make env` first")
