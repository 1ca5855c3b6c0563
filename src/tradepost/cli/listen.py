"""`tradepost listen`: a local webhook receiver for development."""

import asyncio
import re
import signal
import socket
import sys
from contextlib import AsyncExitStack
from typing import Annotated

from cyclopts import Parameter

from tradepost.cli import key_file
from tradepost.cli.receiver import RESPONSES, LocalReceiver, is_response
from tradepost.cli.registration import Registration, RegistrationFailed

_BASE_URL = re.compile(r"https?://[^/?#\s]+(/[^?#\s]*)?")
_HIGHEST_PORT = 65535
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (--host may be the unspecified address)


def listen(
    *,
    port: int = 8787,
    host: str = "127.0.0.1",
    secret: Annotated[list[str] | None, Parameter(negative="")] = None,
    answer: str = "204",
    register: str | None = None,
    key: Annotated[str | None, Parameter(env_var="TRADEPOST_KEY")] = None,
    events: Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")] = None,
    verbose: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Receive webhooks on this machine: verify, print and answer each delivery.

    A delivery to the path /500, /410, /hang and so on gets that answer instead of --answer. To change the
    answer while the command runs, PUT one to /answer. A delivery that cannot be verified is answered 401.

    Parameters
    ----------
    port
        The port to listen on; 0 picks a free one.
    host
        The address to listen on.
    secret
        The endpoint's secret, as shown when the endpoint was created. Repeat it during a rotation.
    answer
        The answer to deliveries: a status from 200 to 599, or hang.
    register
        The URL of a running service, such as http://127.0.0.1:8000. Creates an endpoint there and deletes it
        when the command ends.
    key
        The API key for --register. Default: the key in the file var/key, which `make run` writes.
    events
        The types of events for --register, such as order.placed or 'order.*'. Default: all.
    verbose
        Also print the body of each delivery.
    """
    if not 0 <= port <= _HIGHEST_PORT:
        sys.exit(f"tradepost: --port must be from 0 to {_HIGHEST_PORT}, not {port}")
    if not is_response(answer):
        sys.exit(f"tradepost: --answer must be {RESPONSES}, not {answer!r}")
    if "" in (secret or []) or not (secret or register):
        sys.exit("tradepost: set --secret whsec_…, or --register http://127.0.0.1:8000 to create an endpoint")
    registration = Registration(_base_url(register), _key(key), _types(events)) if register else None
    with _listening(host, port) as listening:
        try:
            asyncio.run(_run(listening, LocalReceiver(secret or [], answer, verbose=verbose), registration))
        except RegistrationFailed as failure:
            sys.exit(f"tradepost: {failure}")


def _base_url(url: str) -> str:
    if not _BASE_URL.fullmatch(url):
        sys.exit(f"tradepost: --register must be a URL such as http://127.0.0.1:8000, not {url!r}")
    return url.rstrip("/")


def _key(option: str | None) -> str:
    key = (option or "").strip() or key_file.read()
    if not key:
        sys.exit(
            "tradepost: --register needs an API key: set --key or TRADEPOST_KEY, "
            f"or write it to {key_file.KEY_FILE}"
        )
    return key


def _types(events: list[str] | None) -> list[str]:
    return [name for text in events or ["*"] for name in text.split(",")]


def _listening(host: str, port: int) -> socket.socket:
    """A listening socket. Connections that arrive before it is served wait in its queue."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        sys.exit(f"tradepost: cannot listen on {host}:{port} ({error.strerror}); --port 0 picks a free port")


async def _run(listening: socket.socket, receiver: LocalReceiver, registration: Registration | None) -> None:
    """Receives deliveries until SIGINT or SIGTERM; raises `RegistrationFailed`."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    url = _url(listening)
    async with AsyncExitStack() as stack:
        suffix = ""
        if registration is not None:
            endpoint = await stack.enter_async_context(registration.endpoint(f"{url}/"))
            receiver.secrets.append(endpoint.secret)
            suffix = f", as endpoint {endpoint.id} of {registration.base_url}"
        await stack.enter_async_context(receiver.serving(listening))
        print(f"tradepost is listening on {url}{suffix}", flush=True)
        await stopped.wait()


def _url(listening: socket.socket) -> str:
    """The URL at which this machine reaches the socket."""
    host, port = listening.getsockname()[:2]
    host = _LOOPBACK.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
