"""The commands: python -m examples.online_retail convert | load | check, each with its own --help."""

import sys
from argparse import REMAINDER, ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence

from . import check, convert, load
from .lines import SourceError

Command = Callable[[Sequence[str]], int]
COMMANDS: dict[str, Command] = {"convert": convert.main, "load": load.main, "check": check.main}
WHAT_THEY_DO = """
commands:
  convert [SOURCE] OUT_DIR                 write users.csv products.csv orders.jsonl report.json
  load [SOURCE] --database-url URL         convert, migrate and import, with the time of each step
  check OUT_DIR --url URL --key KEY        compare a running service with report.json
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(
        prog="python -m examples.online_retail",
        description=__doc__,
        epilog=WHAT_THEY_DO,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS)
    # Each command parses its own rest: sub-parsers cannot take an optional SOURCE after an option.
    parser.add_argument("rest", nargs=REMAINDER)
    chosen = parser.parse_args(arguments)
    try:
        return COMMANDS[chosen.command](chosen.rest)
    except SourceError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    sys.exit(main())
