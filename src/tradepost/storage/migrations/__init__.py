"""The history of the schema: forward only, with the same files for both engines.

Alembic writes the missing migrations as SQL, and our drivers run it in one transaction. Importing this module
is cheap: Alembic is loaded only if there is something to migrate.
"""

import io
from pathlib import Path

_VERSIONS = Path(__file__).parent / "versions"


def head() -> str:
    """The version of the newest migration; files are named `<version>_<content>.py`."""
    return max(path.name.partition("_")[0] for path in _VERSIONS.glob("[0-9]*.py"))


def script(dialect: str, since: str | None) -> str:
    """The SQL that brings a schema from version `since` (None: an empty database) to the newest one."""
    from alembic import command  # noqa: PLC0415 (it takes 0.1 s, which other starts save)
    from alembic.config import Config  # noqa: PLC0415

    written = io.StringIO()
    config = Config()
    config.set_main_option("script_location", str(_VERSIONS.parent))
    config.attributes |= {"dialect": dialect, "script": written}
    command.upgrade(config, f"{since or 'base'}:head", sql=True)
    return written.getvalue()
