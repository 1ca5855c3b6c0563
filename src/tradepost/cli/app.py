"""The command line: the subcommands, and failures as one line and an exit status."""

import sys

from cyclopts import App

from tradepost import __version__, settings
from tradepost.problems import Problem
from tradepost.settings import BadSetting

app = App(
    name="tradepost",
    help="Orders, users and products over REST, GraphQL and signed webhooks.",
    version=__version__,
)


def _settings() -> str:
    """All settings, for the help of `serve`."""
    return "Settings, read from environment variables:\n\n" + "\n\n".join(
        f"{variable}={default}: {meaning}" for variable, default, meaning in settings.described()
    )


for name, target in {
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
    app.command(target, name=name, **({"help_epilogue": _settings()} if name == "serve" else {}))


def main() -> None:
    """Runs the command line; a bad setting or a problem ends it with one line on standard error."""
    try:
        app()
    except BadSetting as error:
        sys.exit(f"tradepost: {error}")
    except Problem as problem:
        sys.exit(f"tradepost: {problem.detail}")
