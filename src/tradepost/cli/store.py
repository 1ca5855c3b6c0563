"""The store, as a command uses it: opened, checked, and closed again."""

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
    """What an operator performs calls with, on a database whose schema is up to date."""
    database = assembly.database(settings)
    await database.start()
    try:
        await assembly.check_schema(database)
        yield assembly.performer(settings, database, Clock(), catalogue.RESOURCES)
    finally:
        await database.stop()


def source_of(settings: Settings) -> str:
    """What events of a command give as their source: the address of the service."""
    return settings.base_url or f"http://{settings.host}:{settings.port}"
