"""The command itself: its words, and how a failure ends it: one clear line and an exit status."""

import sys

from cyclopts import App

from tradepost import __version__, settings
from tradepost.problems import Problem
from tradepost.settings import BadSetting

app = App(
    name="tradepost",
    help="Orders, users and products over REST, GraphQL and signed webhooks: one store, nothing lost.",
    version=__version__,
)


def _settings() -> str:
    """Every setting, for the help of the command that heeds them all."""
    return "Settings, from the environment:\n\n" + "\n\n".join(
        f"{variable}={default}: {meaning}" for variable, default, meaning in settings.described()
    )


for word, where in {
    "serve": "tradepost.cli.serve:serve",
    "worker": "tradepost.cli.worker:worker",
    "listen": "tradepost.cli.listen:listen",
    "migrate": "tradepost.cli.migrate:migrate",
    "keys": "tradepost.cli.keys:keys",
    "openapi": "tradepost.cli.openapi:openapi",
    "schema": "tradepost.cli.schema:schema",
    "doctor": "tradepost.cli.doctor:doctor",
    "demo": "tradepost.cli.demo:demo",
    "import": "tradepost.cli.import_:import_",
    "export": "tradepost.cli.export:export",
}.items():
    app.command(where, name=word, **({"help_epilogue": _settings()} if word == "serve" else {}))


def main() -> None:
    """Runs the command line."""
    try:
        app()
    except BadSetting as error:
        sys.exit(f"tradepost: {error}")
    except Problem as problem:
        sys.exit(f"tradepost: {problem.detail}")
