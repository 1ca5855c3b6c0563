"""The schema's history: forward only, the same files for both engines.

Alembic writes what is pending as SQL; the drivers that serve run it, in one transaction. Importing this costs
nothing: Alembic is loaded when there is something to migrate.
"""

import io
from pathlib import Path

_VERSIONS = Path(__file__).parent / "versions"


def head() -> str:
    """The newest migration: files are named `<version>_<what>.py`."""
    return max(path.name.partition("_")[0] for path in _VERSIONS.glob("[0-9]*.py"))


def script(dialect: str, since: str | None) -> str:
    """What brings a schema from `since` (None: an empty database) to the newest version, as SQL."""
    from alembic import command  # noqa: PLC0415 (0.1 s that a start without migrations need not pay)
    from alembic.config import Config  # noqa: PLC0415

    written = io.StringIO()
    config = Config()
    config.set_main_option("script_location", str(_VERSIONS.parent))
    config.attributes |= {"dialect": dialect, "script": written}
    command.upgrade(config, f"{since or 'base'}:head", sql=True)
    return written.getvalue()
