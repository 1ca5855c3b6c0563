"""The schema's history: forward only, the same files for both engines.

Importing this costs nothing; Alembic is loaded when there is something to migrate.
"""

from pathlib import Path

_VERSIONS = Path(__file__).parent / "versions"


def head() -> str:
    """The newest migration: files are named `<version>_<what>.py`."""
    return max(path.name.partition("_")[0] for path in _VERSIONS.glob("[0-9]*.py"))


def migrate(url: str) -> None:
    """Brings the schema of the database at `url` to the newest version; nothing to do is fine."""
    from alembic import command  # noqa: PLC0415 (0.1 s that a start without migrations need not pay)
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(_VERSIONS.parent))
    config.attributes["url"] = url
    command.upgrade(config, "head")
