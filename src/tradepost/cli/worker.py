"""`tradepost worker`: delivers webhooks, so that processes that serve need not."""

import asyncio
import signal
import sys

from aiohttp import web

from tradepost import assembly, logs
from tradepost.cli.store import opened
from tradepost.documents.document import TEXT
from tradepost.metrics import Metrics
from tradepost.problems import Unavailable
from tradepost.server import allow_files
from tradepost.settings import Settings, load

_MAX_FILES = 8192  # mostly connections to receivers, some of them kept open for the next delivery


def worker(*, host: str = "127.0.0.1", metrics_port: int | None = None) -> None:
    """Deliver webhooks. Any number of workers can share a database; SIGTERM ends one.

    Parameters
    ----------
    host
        The address for --metrics-port.
    metrics_port
        The port on which to answer /metrics and /livez. Default: the worker does not listen.
    """
    settings = load()
    logs.set_up(*settings.log)
    allow_files(_MAX_FILES)
    with asyncio.Runner(loop_factory=_loop) as runner:
        runner.run(_deliver(settings, host, metrics_port))


def _loop() -> asyncio.AbstractEventLoop:
    """An event loop of uvloop where it is installed, as in the server."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _deliver(settings: Settings, host: str, port: int | None) -> None:
    metrics = assembly.metrics_of(settings)
    async with opened(settings) as performer:
        await assembly.check_secrets(settings, performer)
        deliveries = assembly.Deliveries(settings, performer, metrics)
        runner = await _answering(metrics, host, port)
        deliveries.start()
        print("tradepost is delivering webhooks", file=sys.stderr, flush=True)
        try:
            await _signalled()
        finally:
            await deliveries.stop()
            await performer.services.targets.close()
            await runner.cleanup()


async def _signalled() -> None:
    """Returns on SIGTERM or SIGINT."""
    signalled = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, signalled.set)
    await signalled.wait()


async def _answering(metrics: Metrics, host: str, port: int | None) -> web.AppRunner:
    """A server of this worker's metrics, listening if `port` is set; raises `Unavailable` if it cannot."""

    async def exposition(_: web.Request) -> web.Response:
        return web.Response(body=metrics.exposition(), headers={"Content-Type": TEXT.decode()})

    async def live(_: web.Request) -> web.Response:
        return web.json_response({"status": "live"})

    application = web.Application()
    application.add_routes([web.get("/metrics", exposition), web.get("/livez", live)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    if port is not None:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            message = f"The worker cannot listen on {host}:{port}: {error.strerror}"
            raise Unavailable(message) from None
    return runner
