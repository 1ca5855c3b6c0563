"""`tradepost serve`: runs the service in one or several processes."""

import asyncio
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Annotated

from cyclopts import Parameter

from tradepost import assembly, logs, server
from tradepost.cli import keys
from tradepost.cli.checkup import surroundings
from tradepost.cli.store import opened
from tradepost.clock import Clock
from tradepost.settings import Settings, load
from tradepost.storage.statements import api_keys

_log = logging.getLogger("tradepost")


def serve(
    *,
    host: str | None = None,
    port: int | None = None,
    workers: int = 1,
    migrate: bool = False,
    deliveries: Annotated[bool, Parameter(negative="--no-deliveries")] = True,
    welcome: bool = False,
) -> None:
    """Serve the API. Creates and prints a first API key if the database has none.

    Parameters
    ----------
    host
        The address to listen on. Default: TRADEPOST_HOST.
    port
        The port to listen on. Default: TRADEPOST_PORT.
    workers
        The number of processes that serve.
    migrate
        Apply pending migrations first. On SQLite this always happens.
    deliveries
        Also deliver webhooks.
    welcome
        For development: add demo data to an empty database, write a key to var/key, allow webhooks to this
        machine, and print commands to try.
    """
    if not deliveries:
        os.environ["TRADEPOST_DELIVERIES"] = "0"
    if welcome:
        os.environ.setdefault("TRADEPOST_WEBHOOK_ALLOW_PRIVATE", "1")
    settings = load(host=host, port=port)
    assembly.lifecycle_of(settings, Clock())
    if migrate or settings.database_url.startswith("sqlite:"):
        asyncio.run(assembly.migrate(settings))
    on_start = _welcome(settings) if welcome else None
    asyncio.run(_first_key(settings))
    _warn(settings)
    os.environ["TRADEPOST_HOST"], os.environ["TRADEPOST_PORT"] = settings.host, str(settings.port)
    if workers > 1:
        with tempfile.TemporaryDirectory(prefix="tradepost-metrics-") as directory:
            os.environ["TRADEPOST_METRICS_DIR"] = directory
            server.serve(settings, workers, on_start)
    else:
        server.serve(settings, workers, on_start)


def _warn(settings: Settings) -> None:
    """Logs warnings, once for all processes that serve."""
    logs.set_up(*settings.log)
    for finding in surroundings.address(settings):
        _log.warning(finding.text)


def _welcome(settings: Settings) -> Callable[[str], None]:
    from tradepost.cli.welcome import Welcome, prepare  # noqa: PLC0415 (only development needs it)

    return Welcome(asyncio.run(prepare(settings))).say


async def _first_key(settings: Settings) -> None:
    async with opened(settings) as performer:
        if await performer.database.reading().row(api_keys.ANY) is None:
            key = await keys.make(performer, {"name": "the first key", "scopes": ["admin"]})
            print(f"The first API key; it cannot be shown again:\n  {key}", file=sys.stderr, flush=True)
