"""Webhooks: whether their secrets can be opened, what they may reach, whether somebody delivers."""

from collections.abc import AsyncIterator

from tradepost import assembly
from tradepost.cli.checkup.finding import Finding, fail, ok, warn
from tradepost.clock import Clock, parse_instant
from tradepost.problems import Problem, Unavailable
from tradepost.settings import BadSetting, Settings
from tradepost.storage.database import Database
from tradepost.storage.statements import webhook_deliveries, webhook_secrets

_LATE_MS = 60_000


async def webhooks(database: Database, found: Settings) -> AsyncIterator[Finding]:
    """All about webhooks, on a database whose schema is up to date."""
    yield await _secrets(database, found)
    if found.webhook_allow_private:
        seen = "webhooks may go to private addresses, over http"
        yield warn(seen, "TRADEPOST_WEBHOOK_ALLOW_PRIVATE is for development")
    try:
        yield await _backlog(database)
    except Unavailable as problem:
        yield warn("what waits to be delivered could not be counted", problem.detail)


async def _secrets(database: Database, found: Settings) -> Finding:
    kept = [sealed for (sealed,) in await database.reading().rows(webhook_secrets.SEALED)]
    try:
        sealer = assembly.sealer(found)
        if not kept:
            return ok("there are no webhook secrets")
        sealer.check(kept)
    except (BadSetting, Problem) as error:
        return fail("webhook secrets cannot be opened", str(error))
    return ok("webhook secrets can be opened")


async def _backlog(database: Database) -> Finding:
    ((pending, first),) = await database.reading().rows(webhook_deliveries.BACKLOG)
    late = 0 if first is None else Clock().now() - parse_instant(first)
    if late > _LATE_MS:
        seen = f"pending deliveries: {pending}, the first due for {late // 1000} s"
        return warn(seen, "does a process deliver, and do the receivers answer?")
    return ok(f"pending deliveries: {pending}, none due for long")
