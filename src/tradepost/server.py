"""The server: uvicorn with the hardened protocols, on one port, in one or several processes."""

import http.client
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from tradepost.protocols.http import Config, Hardened
from tradepost.protocols.socket import HardenedSocket
from tradepost.settings import Settings

_MAX_MESSAGE = 1 << 20
_PING_SECONDS = 20
_OTHER_FILES = 4096  # open files besides WebSockets, mostly HTTP connections
_KEEP_ALIVE_SECONDS = 75  # longer than the idle time of common load balancers, so that they close first
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 (operators may choose this address)


def serve(settings: Settings, workers: int, then: Callable[[str], None] | None = None) -> None:
    """Serves until a signal ends it. Once it answers, prints its URL and calls `then` with it."""
    allow_files(settings.graphql_max_sockets + _OTHER_FILES)
    config = configuration(settings, "tradepost.assembly:application", workers)
    listening = _listen(settings)
    threading.Thread(target=_announce, args=(listening.getsockname(), then), daemon=True).start()
    server = uvicorn.Server(config)
    if workers > 1:
        Multiprocess(config, sockets=[listening]).run()
    else:
        server.run(sockets=[listening])
        if not server.started:
            sys.exit(3)


def configuration(
    settings: Settings, application: str | Callable[[], Any], workers: int = 1
) -> uvicorn.Config:
    """The configuration of the server; `application` is a factory or the import path of one."""
    config = Config(
        application,
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=workers,
        http=Hardened,
        ws=HardenedSocket,
        ws_max_size=_MAX_MESSAGE,
        ws_per_message_deflate=False,  # its state takes more memory than the rest of an idle socket
        ws_ping_interval=_PING_SECONDS,
        ws_ping_timeout=_PING_SECONDS,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )
    config.head_seconds = settings.header_seconds
    return config


def allow_files(count: int) -> None:
    """Raises the limit of open files to `count`, as far as permitted. The default is often 1024."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 (not on every system)

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        allowed = count if hard == resource.RLIM_INFINITY else min(count, hard)
        if soft != resource.RLIM_INFINITY and soft < allowed:
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        print(
            f"tradepost: cannot listen on {settings.host}:{settings.port}: {error.strerror}", file=sys.stderr
        )
        sys.exit(1)
    listening.set_inheritable(True)
    return listening


def _announce(address: tuple[Any, ...], then: Callable[[str], None] | None) -> None:
    """Prints the URL of the service once it answers."""
    host, port = address[0], address[1]
    near = "localhost" if host in _EVERYWHERE else host
    while True:
        connection = http.client.HTTPConnection(near, port, timeout=1)
        try:
            connection.request("GET", "/livez")
            if connection.getresponse().status == http.client.OK:
                break
        except OSError:
            time.sleep(0.02)
        finally:
            connection.close()
    shown = f"[{host}]" if ":" in host else host
    print(f"tradepost is serving on http://{shown}:{port}", flush=True)
    if then is not None:
        then(f"http://{near if host in _EVERYWHERE else shown}:{port}")
