"""The command itself: its words, and how a failure ends it: one clear line and an exit status."""

import sys

from cyclopts import App

from tradepost import __version__
from tradepost.problems import Problem
from tradepost.settings import BadSetting

app = App(
    name="tradepost",
    help="Orders, users and products over REST, GraphQL and signed webhooks: one store, nothing lost.",
    version=__version__,
)

for word, where in {
    "serve": "tradepost.cli.serve:serve",
    "migrate": "tradepost.cli.migrate:migrate",
    "keys": "tradepost.cli.keys:keys",
    "openapi": "tradepost.cli.openapi:openapi",
    "doctor": "tradepost.cli.doctor:doctor",
    "demo": "tradepost.cli.demo:demo",
    "import": "tradepost.cli.import_:import_",
    "export": "tradepost.cli.export:export",
}.items():
    app.command(where, name=word)


def main() -> None:
    """Runs the command line."""
    try:
        app()
    except BadSetting as error:
        sys.exit(f"tradepost: {error}")
    except Problem as problem:
        sys.exit(f"tradepost: {problem.detail}")
