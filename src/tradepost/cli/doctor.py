"""`tradepost doctor`: checks everything the service needs, and gives advice on each fault."""

import asyncio
from collections.abc import AsyncIterator

from tradepost.cli.checkup import machine, surroundings
from tradepost.cli.checkup.finding import Finding, fail
from tradepost.cli.checkup.store import store
from tradepost.settings import BadSetting, load


def doctor() -> int:
    """Check the machine, the settings and the database: one line each, with advice. Changes nothing.

    The exit status is 1 if a check failed; warnings do not count.
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
        settings = load()
    except BadSetting as error:
        yield fail(str(error), "correct it; the other checks need it")
        return
    for finding in (
        *surroundings.variables(),
        *surroundings.address(settings),
        *surroundings.versions(settings),
        *machine.port(settings),
    ):
        yield finding
    async for finding in store(settings):
        yield finding
    async for finding in surroundings.redis(settings):
        yield finding
