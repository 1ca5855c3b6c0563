"""`tradepost worker`: deliveries alone, beside processes that serve without them."""

import asyncio
import signal
import sys

from aiohttp import web

from tradepost import assembly, logs, settings
from tradepost.cli.store import opened
from tradepost.documents.document import TEXT
from tradepost.metrics import Metrics
from tradepost.problems import Unavailable
from tradepost.server import allow_files

_FILES = 8192  # connections to receivers above all, some of them kept for the next delivery


def worker(*, host: str = "127.0.0.1", metrics_port: int | None = None) -> None:
    """Deliver webhooks, as one of any number of workers on one database. SIGTERM ends it.

    Parameters
    ----------
    host
        The address on which to answer /metrics and /livez, if a port is given.
    metrics_port
        The port for them; without, the worker listens nowhere.
    """
    found = settings.load()
    logs.set_up(*found.log)
    allow_files(_FILES)
    with asyncio.Runner(loop_factory=_loop) as runner:
        runner.run(_deliver(found, host, metrics_port))


def _loop() -> asyncio.AbstractEventLoop:
    """The quicker loop where there is one, as the server takes it."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _deliver(found: settings.Settings, host: str, port: int | None) -> None:
    metrics = Metrics()
    async with opened(found) as performer:
        await assembly.check_secrets(found, performer)
        deliveries = assembly.Deliveries(found, performer, metrics)
        runner = await _answering(metrics, host, port)
        deliveries.start()
        print("tradepost delivers webhooks", file=sys.stderr, flush=True)
        try:
            await _asked_to_end()
        finally:
            await deliveries.stop()
            await performer.means.targets.close()
            await runner.cleanup()


async def _asked_to_end() -> None:
    asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, asked.set)
    await asked.wait()


async def _answering(metrics: Metrics, host: str, port: int | None) -> web.AppRunner:
    """A server of this worker's figures, if it has a port."""

    async def figures(_: web.Request) -> web.Response:
        return web.Response(body=metrics.exposition(), headers={"Content-Type": TEXT.decode()})

    async def live(_: web.Request) -> web.Response:
        return web.json_response({"status": "live"})

    application = web.Application()
    application.add_routes([web.get("/metrics", figures), web.get("/livez", live)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    if port is not None:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            message = f"The worker cannot answer on {host}:{port}: {error.strerror}"
            raise Unavailable(message) from None
    return runner
