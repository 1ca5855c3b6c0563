"""Webhooks: whether secrets can be decrypted, which targets are allowed, and the backlog of deliveries."""

from collections.abc import AsyncIterator

from tradepost import assembly
from tradepost.cli.checkup.finding import Finding, fail, ok, warn
from tradepost.clock import Clock, parse_instant
from tradepost.problems import Problem, Unavailable
from tradepost.settings import BadSetting, Settings
from tradepost.storage.database import Database
from tradepost.storage.statements import webhook_deliveries, webhook_secrets

_LATE_MS = 60_000


async def webhooks(database: Database, settings: Settings) -> AsyncIterator[Finding]:
    """The findings about webhooks, on a database whose schema is up to date."""
    yield await _secrets(database, settings)
    if settings.webhook_allow_private:
        observed = "webhooks may be sent to private addresses and over http"
        yield warn(observed, "TRADEPOST_WEBHOOK_ALLOW_PRIVATE is for development")
    try:
        yield await _backlog(database)
    except Unavailable as problem:
        yield warn("pending deliveries could not be counted", problem.detail)


async def _secrets(database: Database, settings: Settings) -> Finding:
    secrets = [sealed for (sealed,) in await database.reading().rows(webhook_secrets.SEALED)]
    try:
        sealer = assembly.sealer(settings)
        if not secrets:
            return ok("there are no webhook secrets")
        sealer.check(secrets)
    except (BadSetting, Problem) as error:
        return fail("webhook secrets cannot be decrypted", str(error))
    return ok("webhook secrets can be decrypted")


async def _backlog(database: Database) -> Finding:
    ((pending, oldest_due),) = await database.reading().rows(webhook_deliveries.BACKLOG)
    late_ms = 0 if oldest_due is None else Clock().now_ms() - parse_instant(oldest_due)
    if late_ms > _LATE_MS:
        observed = f"pending deliveries: {pending}, the oldest overdue by {late_ms // 1000} s"
        return warn(observed, "is a process delivering, and do the receivers answer?")
    return ok(f"pending deliveries: {pending}, none overdue")
