"""`tradepost migrate`: brings the schema up to date."""

import sys

from tradepost import settings
from tradepost.storage import migrations


def migrate() -> None:
    """Bring the schema of the database to the version this program needs."""
    migrations.migrate(settings.load().database_url)
    print(f"The schema is at {migrations.head()}.", file=sys.stderr)
