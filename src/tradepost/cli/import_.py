"""`tradepost import`: records of a file into the database; what is there already stays as it is."""

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from tradepost import settings
from tradepost.cli.progress import Show, shown
from tradepost.cli.store import OPERATOR, opened, source_of
from tradepost.problems import Problem
from tradepost.settings import Settings
from tradepost.transfer.addresses import AddressKind
from tradepost.transfer.csv_table import Table
from tradepost.transfer.given import Given, Reader
from tradepost.transfer.imports import Import
from tradepost.transfer.json_lines import JsonLines
from tradepost.transfer.kind import Kind
from tradepost.transfer.loading import Loading
from tradepost.transfer.orders import OrderKind
from tradepost.transfer.plain import products, users
from tradepost.transfer.rejects import Rejects
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
_TOLD = 20  # rejected rows told of one by one
_SOME_REJECTED, _UNREADABLE, _STOPPED, _INTERRUPTED = 1, 2, 3, 130


def import_(
    what: What,
    file: File,
    *,
    form: Annotated[Format | None, Parameter("--format")] = None,
    rejects: Path | None = None,
) -> int:
    """Import users, addresses, products or orders from a file: CSV or JSON Lines, plain or gzipped.

    Members are named as in the API. What is there already (a user's email, a product's sku, an order's
    reference or id) is left alone, so that importing a file again is safe. Rows that are not valid are kept
    aside with the reason: mend them there and import that file. Exit status: 0 if all went in, 1 if some were
    rejected, 2 if the file could not be read, 3 if the database failed.

    Parameters
    ----------
    what
        What the file holds.
    file
        The file; - reads standard input.
    form
        csv or jsonl, where the file's name does not tell.
    rejects
        Where rejected rows are kept, instead of FILE.rejects.csv or .jsonl.
    """
    found = settings.load()
    tally = Tally()
    try:
        form = format_of(file, form)
        aside = rejects or _aside(what, file, form)
        with reading(file) as source:
            asyncio.run(_import(found, what, form, source, aside, tally))
    except Unreadable as error:
        return _ended(_UNREADABLE, f"{file} {error}", what, tally)
    except Problem as problem:
        return _ended(_STOPPED, problem.detail, what, tally)
    except KeyboardInterrupt:
        return _ended(_INTERRUPTED, "interrupted", what, tally)
    _tell(what, tally, aside)
    return _SOME_REJECTED if tally.rejected else 0


def _ended(status: int, why: str, what: What, tally: Tally) -> int:
    """The end before the end of the file."""
    print(f"tradepost: {why}", file=sys.stderr)
    if tally.read:
        print(f"{_summary(what, tally)}; importing the file again goes on", file=sys.stderr)
    return status


async def _import(
    found: Settings, what: What, form: Format, source: Source, aside: Path, tally: Tally
) -> None:
    kind = _kind(what)
    reader: Reader = Table(source, kind.shape) if form == "csv" else JsonLines(source)
    with Rejects(reader, source, aside) as rejects, shown(what, source.size) as show:

        def reject(given: Given, reason: str) -> None:
            rejects.keep(given, reason)
            if rejects.count <= _TOLD:
                print(f"line {given.line}: {reason}", file=sys.stderr)

        async with opened(found) as performer:
            loading = Loading(performer, OPERATOR, source_of(found))
            watch = partial(_watch, show, source, tally)
            await Import(loading, kind, tally, reject, watch).run(reader)


def _watch(show: Show, source: Source, tally: Tally) -> None:
    show(source.position, tally.read)


def _kind(what: What) -> Kind:
    return _KINDS[what]()


def _aside(what: What, file: str, form: Format) -> Path:
    return Path(f"import-{what}.rejects.{form}" if file == STANDARD else f"{file}.rejects.{form}")


def _tell(what: What, tally: Tally, aside: Path) -> None:
    """The summary, on standard output; why rows were rejected, by kind and count."""
    print(_summary(what, tally))
    for reason, count in tally.reasons.most_common():
        print(f"  {count:>9,}  {reason}")
    if tally.rejected:
        print(f"The rejected rows are in {aside}: mend them and import that file.")


def _summary(what: What, tally: Tally) -> str:
    counts = {
        "read": tally.read,
        "imported": tally.added,
        "already there": tally.there,
        "rejected": tally.rejected,
    }
    return f"{what}: " + ", ".join(f"{count:,} {name}" for name, count in counts.items())
