"""Progress of long commands on standard error: a bar on a terminal, otherwise a line every few seconds."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Called with the part of the total that is done, and the number of entities.
Show = Callable[[int, int], None]

_LINE_SECONDS = 5.0


@contextmanager
def show_progress(what: str, total: int) -> Iterator[Show]:
    """Shows progress towards `total`, in any unit; 0 if the total is unknown."""
    if sys.stderr.isatty():
        with _bar(what, total) as show:
            yield show
    else:
        yield _lines(what, total)


@contextmanager
def _bar(what: str, total: int) -> Iterator[Show]:
    # Loaded only on a terminal: loading takes longer than a small import.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[count]:,}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(what, total=total or None, count=0)
        yield lambda done, count: progress.update(task, completed=done, count=count)


def _lines(what: str, total: int) -> Show:
    last = time.monotonic()

    def show(done: int, count: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _LINE_SECONDS:
            last = time.monotonic()
            share = f"{100 * done / total:.0f} %, " if total else ""
            print(f"{what}: {share}{count:,}", file=sys.stderr, flush=True)

    return show
