"""`tradepost export`: writes users, addresses, products or orders to a file that `tradepost import` reads."""

import asyncio
import os
import sys
from typing import Annotated

from cyclopts import Parameter

from tradepost.cli.import_ import File, What
from tradepost.cli.progress import show_progress
from tradepost.cli.store import opened
from tradepost.settings import Settings, load
from tradepost.transfer.csv_table import TableWriter
from tradepost.transfer.exports import EXPORTS
from tradepost.transfer.file_entity import Writer
from tradepost.transfer.json_lines import JsonWriter
from tradepost.transfer.stream import STANDARD, Format, Unreadable, format_of, writing

_BROKEN_PIPE = 141


def export(
    what: What,
    file: File = STANDARD,
    *,
    form: Annotated[Format | None, Parameter("--format")] = None,
) -> int:
    """Export users, addresses, products or orders as CSV or JSON Lines, which `tradepost import` reads.

    Deleted users and products are included only if orders refer to them.

    Parameters
    ----------
    what
        What to export.
    file
        The file to write; - is standard output. The output is gzipped if the name ends in .gz.
    form
        csv or jsonl. Default: from the name of the file; jsonl on standard output.
    """
    settings = load()
    try:
        chosen = form or ("jsonl" if file == STANDARD else format_of(file, None))
        count = asyncio.run(_export(settings, what, file, chosen))
    except BrokenPipeError:  # the reader of the pipe has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except Unreadable as error:
        sys.exit(f"tradepost: {file}: {error}")
    except OSError as error:
        sys.exit(f"tradepost: cannot write {file}: {error.strerror}")
    print(f"{what}: {count:,} exported", file=sys.stderr)
    return 0


async def _export(settings: Settings, what: What, file: str, form: Format) -> int:
    export = EXPORTS[what]
    count = 0
    async with opened(settings) as performer:
        with writing(file) as out, show_progress(what, 0) as show:
            writer: Writer = (
                TableWriter(out, export.columns, export.line_columns) if form == "csv" else JsonWriter(out)
            )
            async for page in export.pages(performer.database):
                writer.write(page)
                count += len(page)
                show(0, count)
    return count
