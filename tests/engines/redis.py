"""A real Redis for the tests that need one: the one we are given, else the machine's, else none, and why."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from redis import Redis, RedisError

from .process import StartError, account, listening, log_of, private_directory

URL_VARIABLE = "TRADEPOST_TEST_REDIS_URL"

# Nothing is ever written to disk: no snapshots, no log of commands.
SETTINGS = ("--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no")


@dataclass(frozen=True)
class Server:
    """A server that answers, or none: then url is None, and source says why, for the skipped tests."""

    url: str | None
    source: str
    pid: int | None = None


class NoRedisError(Exception):
    """The server we were told to use does not answer."""


@contextmanager
def redis_server() -> Iterator[Server]:
    """A server for the length of the block, if there is one.

    Raises NoRedisError when a given URL does not answer: to skip then would hide that nothing was tested.
    """
    if url := os.environ.get(URL_VARIABLE):
        yield Server(url, f"Redis {_version(url)} from {URL_VARIABLE}")
    elif program := shutil.which("redis-server"):
        with ExitStack() as life:
            try:
                server = life.enter_context(_private_server(program))
            except StartError as error:
                server = Server(None, f"no Redis: {error}")
            yield server
    else:
        yield Server(None, f"no Redis: {URL_VARIABLE} is not set, and no redis-server is on PATH")


@contextmanager
def _private_server(program: str) -> Iterator[Server]:
    owner = account()
    with private_directory(owner) as home:
        server = listening(
            lambda port: [program, "--port", str(port), "--dir", home, *SETTINGS],
            lambda _: b"Ready to accept connections" in log_of(home).read_bytes(),
            owner,
            [home],
        )
        with server as (process, port):
            url = f"redis://127.0.0.1:{port}/0"
            yield Server(url, f"Redis {_version(url)} from {program}", process.pid)


def _version(url: str) -> str:
    try:
        with Redis.from_url(url, socket_timeout=10, socket_connect_timeout=10) as client:
            return str(client.info("server")["redis_version"])
    except (RedisError, ValueError) as error:
        raise NoRedisError(f"{url.rpartition('@')[2]} does not answer: {error}") from None
