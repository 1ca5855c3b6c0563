"""`tradepost serve`: the service, in one process or several."""

import asyncio
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Annotated

from cyclopts import Parameter

from tradepost import assembly, logs, server, settings
from tradepost.cli import keys
from tradepost.cli.checkup import surroundings
from tradepost.cli.store import opened
from tradepost.clock import Clock
from tradepost.settings import Settings
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
    """Serve the API. A new database gets a first key, printed once.

    Parameters
    ----------
    host
        The address to listen on, instead of TRADEPOST_HOST.
    port
        The port to listen on, instead of TRADEPOST_PORT.
    workers
        Processes that serve side by side.
    migrate
        Apply pending migrations first, on PostgreSQL too (an embedded database always does).
    deliveries
        Deliver webhooks from this process too.
    welcome
        Fill an empty database with demo data, keep a key in var/key, let webhooks go to this machine, and say
        what to try: for development.
    """
    if not deliveries:
        os.environ["TRADEPOST_DELIVERIES"] = "0"
    if welcome:
        os.environ.setdefault("TRADEPOST_WEBHOOK_ALLOW_PRIVATE", "1")
    found = settings.load(host=host, port=port)
    assembly.lifecycle_of(found, Clock())
    if migrate or found.database_url.startswith("sqlite:"):
        asyncio.run(assembly.migrate(found))
    then = _welcome(found) if welcome else None
    asyncio.run(_first_key(found))
    _warn(found)
    os.environ["TRADEPOST_HOST"], os.environ["TRADEPOST_PORT"] = found.host, str(found.port)
    if workers > 1:
        with tempfile.TemporaryDirectory(prefix="tradepost-metrics-") as directory:
            os.environ["TRADEPOST_METRICS_DIR"] = directory
            server.serve(found, workers, then)
    else:
        server.serve(found, workers, then)


def _warn(found: Settings) -> None:
    """Logs what should be looked at; here, for each process that serves would say it again."""
    logs.set_up(*found.log)
    for finding in surroundings.address(found):
        _log.warning(finding.text)


def _welcome(found: Settings) -> Callable[[str], None]:
    from tradepost.cli.welcome import Welcome, prepare  # noqa: PLC0415 (who serves in earnest needs none of it)

    return Welcome(asyncio.run(prepare(found))).say


async def _first_key(found: Settings) -> None:
    async with opened(found) as performer:
        if await performer.database.reading().row(api_keys.ANY) is None:
            key = await keys.make(performer, {"name": "the first key", "scopes": ["admin"]})
            print(f"The first key, shown this once:\n  {key}", file=sys.stderr, flush=True)
