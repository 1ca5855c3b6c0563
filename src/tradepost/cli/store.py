"""The database as commands use it: opened, checked, and closed at the end."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tradepost import assembly, catalogue
from tradepost.access.caller import Caller
from tradepost.clock import Clock
from tradepost.domain.scope import granted
from tradepost.perform import Performer
from tradepost.settings import Settings

OPERATOR = Caller(key_id="operator", scopes=granted(["admin"]))


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Performer]:
    """The performer of calls on a database; raises `Unavailable` unless its schema is up to date."""
    database = assembly.database(settings)
    await database.start()
    try:
        await assembly.check_schema(database)
        yield assembly.performer(settings, database, Clock(), catalogue.RESOURCES)
    finally:
        await database.stop()


def source_of(settings: Settings) -> str:
    """The source of events that a command causes: the URL of the service."""
    return settings.base_url or f"http://{settings.host}:{settings.port}"
