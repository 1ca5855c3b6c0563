"""`tradepost import`: reads records from a file into the database; existing records stay as they are."""

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from tradepost.cli.progress import Show, show_progress
from tradepost.cli.store import OPERATOR, opened, source_of
from tradepost.problems import Problem
from tradepost.settings import Settings, load
from tradepost.transfer.addresses import AddressKind
from tradepost.transfer.csv_table import Table
from tradepost.transfer.file_entity import EntityReader, FileEntity
from tradepost.transfer.imports import Import
from tradepost.transfer.json_lines import JsonLines
from tradepost.transfer.kind import Kind
from tradepost.transfer.loading import Loading
from tradepost.transfer.orders import OrderKind
from tradepost.transfer.rejects import Rejects
from tradepost.transfer.simple import products, users
from tradepost.transfer.stream import STANDARD, Format, Source, Unreadable, format_of, reading
from tradepost.transfer.tally import Tally

File = Annotated[str, Parameter(allow_leading_hyphen=True)]  # for -
What = Literal["users", "addresses", "products", "orders"]

_KINDS: dict[What, Callable[[], Kind]] = {
    "users": users,
    "addresses": AddressKind,
    "products": products,
    "orders": OrderKind,
}
_MAX_REPORTED = 20  # rejected rows reported one by one
_SOME_REJECTED, _UNREADABLE, _STOPPED, _INTERRUPTED = 1, 2, 3, 130


def import_(
    what: What,
    file: File,
    *,
    form: Annotated[Format | None, Parameter("--format")] = None,
    rejects: Path | None = None,
) -> int:
    """Import users, addresses, products or orders from CSV or JSON Lines, plain or gzipped.

    Members have the names of the API. Records that already exist (by a user's email, a product's sku, an
    order's reference or id) are left unchanged, so you can safely import a file again. Invalid rows are
    written to a file of rejects with the reason: correct them there and import that file.

    Exit status: 0 if no row was rejected, 1 if some were, 2 if the file could not be read, 3 if the database
    failed.

    Parameters
    ----------
    what
        What the file contains.
    file
        The file to read; - is standard input.
    form
        csv or jsonl. Default: from the name of the file.
    rejects
        The file for rejected rows. Default: FILE.rejects.csv or FILE.rejects.jsonl.
    """
    settings = load()
    tally = Tally()
    try:
        form = format_of(file, form)
        rejects = rejects or _rejects_path(what, file, form)
        with reading(file) as source:
            asyncio.run(_import(settings, what, form, source, rejects, tally))
    except Unreadable as error:
        return _ended(_UNREADABLE, f"{file}: {error}", what, tally)
    except Problem as problem:
        return _ended(_STOPPED, problem.detail, what, tally)
    except KeyboardInterrupt:
        return _ended(_INTERRUPTED, "interrupted", what, tally)
    _report(what, tally, rejects)
    return _SOME_REJECTED if tally.rejected else 0


def _ended(status: int, why: str, what: What, tally: Tally) -> int:
    """Ends the import before the end of the file."""
    print(f"tradepost: {why}", file=sys.stderr)
    if tally.read:
        print(f"{_summary(what, tally)}; import the file again to continue", file=sys.stderr)
    return status


async def _import(
    settings: Settings, what: What, form: Format, source: Source, rejects_path: Path, tally: Tally
) -> None:
    kind = _kind(what)
    reader: EntityReader = Table(source, kind.shape) if form == "csv" else JsonLines(source)
    with Rejects(reader, source, rejects_path) as rejects, show_progress(what, source.size) as show:

        def reject(entity: FileEntity, reason: str) -> None:
            rejects.write(entity, reason)
            if rejects.count <= _MAX_REPORTED:
                print(f"line {entity.line}: {reason}", file=sys.stderr)

        async with opened(settings) as performer:
            loading = Loading(performer, OPERATOR, source_of(settings))
            watch = partial(_watch, show, source, tally)
            await Import(loading, kind, tally, reject, watch).run(reader)


def _watch(show: Show, source: Source, tally: Tally) -> None:
    show(source.position, tally.read)


def _kind(what: What) -> Kind:
    return _KINDS[what]()


def _rejects_path(what: What, file: str, form: Format) -> Path:
    return Path(f"import-{what}.rejects.{form}" if file == STANDARD else f"{file}.rejects.{form}")


def _report(what: What, tally: Tally, rejects: Path) -> None:
    """Prints the summary and the reasons for rejections, with their counts."""
    print(_summary(what, tally))
    for reason, count in tally.reasons.most_common():
        print(f"  {count:>9,}  {reason}")
    if tally.rejected:
        print(f"The rejected rows are in {rejects}: correct them and import that file.")


def _summary(what: What, tally: Tally) -> str:
    counts = {
        "read": tally.read,
        "imported": tally.added,
        "already there": tally.there,
        "rejected": tally.rejected,
    }
    return f"{what}: " + ", ".join(f"{count:,} {name}" for name, count in counts.items())
