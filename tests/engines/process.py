"""A server process of our own: a private directory, an unprivileged account, and an end that is certain.

Everything started here ends three ways: orderly when its `with` block does, by force when it does not
listen, and through a guard when the test run itself is killed and nobody is left to clean up.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import psutil

Command = Sequence[str | Path]

NOBODY = 65534
ROOM_IN_MEMORY = 2 << 30
SHARED_MEMORY = Path("/dev/shm")

# Waits until its standard input closes, which the kernel does however we die; $1 is the server's pid.
GUARD = """
read -r _
pid=$1; shift
kill -INT "$pid" 2>/dev/null
for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
kill -KILL "$pid" 2>/dev/null
rm -rf -- "$@"
"""


class StartError(Exception):
    """A server did not come up; the message holds the end of what it said."""


def account() -> int | None:
    """The uid (and gid) servers run under: unprivileged if we are root, else None, for our own."""
    return NOBODY if os.geteuid() == 0 else None


def environment(caller: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The caller's environment without PG* settings, which would steer servers; messages in English."""
    kept = {name: value for name, value in caller.items() if not name.startswith("PG")}
    return {**kept, "LC_ALL": "C", "TZ": "UTC"}


def run(command: Command, owner: int | None, seconds: float = 120) -> str:
    """The output of a command that ends by itself, run under `owner`.

    PermissionError when that account may not run the file, StartError when the command fails.
    """
    try:
        done = subprocess.run(
            command,
            check=True,
            cwd="/",
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            user=owner,
            group=owner,
            extra_groups=None if owner is None else [],
        )
    except subprocess.CalledProcessError as error:
        raise StartError(f"{command[0]} exited with {error.returncode}: {error.output.strip()}") from error
    except subprocess.TimeoutExpired as error:
        raise StartError(f"{command[0]} took longer than {seconds:g} s") from error
    return done.stdout


@contextmanager
def private_directory(owner: int | None, *, programs: bool = False) -> Iterator[Path]:
    """A fresh directory of `owner`'s, removed at the end; on a disk if it must hold `programs`.

    Otherwise in shared memory if there is room, unless TMPDIR names a place: creating a database takes
    up to ten times as long on a disk.
    """
    directory = Path(tempfile.mkdtemp(prefix="tradepost-test-", dir=_parent(owner, programs=programs)))
    try:
        if owner is not None:
            os.chown(directory, owner, owner)
        yield directory
    finally:
        shutil.rmtree(directory)


def _parent(owner: int | None, *, programs: bool) -> Path:
    in_memory = not programs and "TMPDIR" not in os.environ and _has_room(SHARED_MEMORY)
    temporary = [Path(tempfile.gettempdir()).resolve(), Path("/tmp"), Path("/var/tmp")]
    places = [SHARED_MEMORY] * in_memory + temporary
    for place in places:
        if _is_open(place) and (owner is None or _lets_pass(place)):
            return place
    under = os.geteuid() if owner is None else owner
    raise StartError(f"uid {under} can work in none of {', '.join(map(str, places))}")


def _has_room(place: Path) -> bool:
    if not place.exists():
        return False
    size = os.statvfs(place)
    return size.f_bavail * size.f_frsize >= ROOM_IN_MEMORY


def _is_open(place: Path) -> bool:
    return os.access(place, os.W_OK | os.X_OK)


def _lets_pass(place: Path) -> bool:
    """Whether every account may go through the directory and all above it."""
    return all(part.stat().st_mode & 0o001 for part in (place, *place.parents))


def free_port() -> int:
    """A port of 127.0.0.1 nobody listens on; another process may take it before we do."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@contextmanager
def listening(
    command: Callable[[int], Command],
    ready: Callable[[int], bool],
    owner: int | None,
    directories: Sequence[Path],
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A private process and its port, both given the port; another port is tried when one gets taken."""
    with ExitStack() as life:
        for tries_left in reversed(range(5)):
            port = free_port()
            server = private_process(command(port), partial(ready, port), owner, directories)
            try:
                process = life.enter_context(server)
            except StartError as error:
                if not tries_left or "Address already in use" not in str(error):
                    raise
            else:
                yield process, port
                return


@contextmanager
def private_process(
    command: Command, ready: Callable[[], bool], owner: int | None, directories: Sequence[Path]
) -> Iterator[subprocess.Popen[bytes]]:
    """A server that is `ready` inside the block and gone after it; the first directory holds its log.

    StartError when it exits, cannot be run, or is not ready within 30 s. The directories go with it
    if we are killed.
    """
    log = log_of(directories[0])
    process = _spawn(command, owner, log)
    try:
        with _guard(process.pid, directories):
            if not wait_for(lambda: process.poll() is not None or ready(), 30):
                raise StartError(f"{command[0]} was not ready after 30 s: {_end(log)}")
            if process.returncode is not None:
                raise StartError(f"{command[0]} exited with {process.returncode}: {_end(log)}")
            yield process
    finally:
        stop(process)


def log_of(directory: Path) -> Path:
    """Where a server with this directory says what it does."""
    return directory / "server.log"


def _spawn(command: Command, owner: int | None, log: Path) -> subprocess.Popen[bytes]:
    try:
        with log.open("ab") as output:
            return subprocess.Popen(
                command,
                cwd=log.parent,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                user=owner,
                group=owner,
                extra_groups=None if owner is None else [],
                start_new_session=True,  # Ctrl-C ends the tests first, then they end the server
            )
    except OSError as error:
        raise StartError(f"{command[0]} cannot be run: {error}") from error


@contextmanager
def _guard(pid: int, directories: Sequence[Path]) -> Iterator[None]:
    command: list[str | Path] = ["/bin/sh", "-c", GUARD, "guard", str(pid), *directories]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing, cwd="/", start_new_session=True
    ) as guard:
        try:
            yield
        finally:
            guard.kill()


def _end(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:].strip() or "it said nothing"


def stop(process: subprocess.Popen[bytes], patience: float = 10) -> None:
    """End a server and all it started: asked, told, forced, each within `patience` seconds."""
    family = _descendants(process.pid)
    for farewell in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        process.send_signal(farewell)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            break
    for orphan in family:
        with suppress(psutil.NoSuchProcess):
            orphan.kill()
    left = [pid for pid in (process.pid, *(orphan.pid for orphan in family)) if not gone(pid, patience)]
    if left:
        raise RuntimeError(f"processes {left} survived SIGKILL")


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def running(pid: int) -> bool:
    """Whether the process still does anything: a zombie, which its parent has yet to reap, does not."""
    try:
        return psutil.Process(pid).status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.NoSuchProcess:
        return False


def gone(pid: int, seconds: float) -> bool:
    """Whether the process ends within so many seconds."""
    return wait_for(lambda: not running(pid), seconds)


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition comes true within so many seconds; looks every 5 ms."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
