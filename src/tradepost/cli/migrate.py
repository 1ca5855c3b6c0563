"""`tradepost migrate`: brings the database schema up to date."""

import asyncio
import sys

from tradepost import assembly, settings
from tradepost.storage import migrations


def migrate() -> None:
    """Bring the database schema to the version this program needs."""
    asyncio.run(assembly.migrate(settings.load()))
    print(f"The schema is at {migrations.head()}.", file=sys.stderr)
