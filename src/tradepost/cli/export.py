"""`tradepost export`: all users, products or orders, in a file that `tradepost import` takes."""

import asyncio
import os
import sys
from typing import Annotated

from cyclopts import Parameter

from tradepost import settings
from tradepost.cli.import_ import File, What
from tradepost.cli.progress import shown
from tradepost.cli.store import opened
from tradepost.settings import Settings
from tradepost.transfer.csv_table import TableWriter
from tradepost.transfer.exports import EXPORTS
from tradepost.transfer.given import Writer
from tradepost.transfer.json_lines import JsonWriter
from tradepost.transfer.stream import STANDARD, Format, Unreadable, format_of, writing

_BROKEN_PIPE = 141


def export(
    what: What,
    file: File = STANDARD,
    *,
    form: Annotated[Format | None, Parameter("--format")] = None,
) -> int:
    """Export users, addresses, products or orders, as CSV or JSON Lines that `tradepost import` takes.

    Deleted users and products go along only where orders still name them.

    Parameters
    ----------
    what
        What to export.
    file
        Where to; - writes standard output. A name that ends in .gz is packed.
    form
        csv or jsonl, where the file's name does not tell; on standard output jsonl unless told.
    """
    found = settings.load()
    try:
        chosen = form or ("jsonl" if file == STANDARD else format_of(file, None))
        count = asyncio.run(_export(found, what, file, chosen))
    except BrokenPipeError:  # whoever read has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except Unreadable as error:
        sys.exit(f"tradepost: {file} {error}")
    except OSError as error:
        sys.exit(f"tradepost: {file} cannot be written: {error.strerror}")
    print(f"{what}: {count:,} exported", file=sys.stderr)
    return 0


async def _export(found: Settings, what: What, file: str, form: Format) -> int:
    chosen = EXPORTS[what]
    count = 0
    async with opened(found) as performer:
        with writing(file) as out, shown(what, 0) as show:
            writer: Writer = (
                TableWriter(out, chosen.columns, chosen.line_columns) if form == "csv" else JsonWriter(out)
            )
            async for page in chosen.pages(performer.database):
                writer.write(page)
                count += len(page)
                show(0, count)
    return count
