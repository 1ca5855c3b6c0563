"""`tradepost doctor`: looks at everything the service needs, and says what to do where something is wrong."""

import asyncio
from collections.abc import AsyncIterator

from tradepost import settings
from tradepost.cli.checkup import machine, surroundings
from tradepost.cli.checkup.finding import Finding, fail
from tradepost.cli.checkup.store import store
from tradepost.settings import BadSetting


def doctor() -> int:
    """Check the machine, the settings and the database; a line for each, and what to do. Changes nothing.

    Exit status: 1 if anything failed; a warning is none.
    """
    return asyncio.run(_report())


async def _report() -> int:
    failed = False
    async for finding in _findings():
        print(finding, flush=True)
        failed |= finding.level == "fail"
    return int(failed)


async def _findings() -> AsyncIterator[Finding]:
    for check in (machine.python, machine.sqlite_library, machine.clock):
        for finding in check():
            yield finding
    try:
        found = settings.load()
    except BadSetting as error:
        yield fail(str(error), "nothing else can be checked before this is right")
        return
    for finding in (
        *surroundings.given(),
        *surroundings.address(found),
        *surroundings.versions(found),
        *machine.port(found),
    ):
        yield finding
    async for finding in store(found):
        yield finding
    async for finding in surroundings.redis(found):
        yield finding
