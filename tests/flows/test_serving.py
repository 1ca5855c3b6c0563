"""The program as an operator runs it: how it starts, serves in several processes, and ends."""

import http.client
import json
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.flows.forked import Forked
from tests.flows.process import COMMAND, Process, environment, read_answer, run, serving


def test_a_new_database_gets_its_schema_and_a_first_key(tmp_path: Path) -> None:
    """`serve` on a file that does not exist migrates it and prints one working key, once."""
    url = f"sqlite:///{tmp_path}/new.db"
    child = subprocess.Popen(
        [COMMAND, "serve", "--port", "0"],
        env=environment(url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert "serving on http://127.0.0.1:" in child.stdout.readline()
    child.terminate()
    first = child.communicate(timeout=20)[1]
    assert first.count("tp_") == 1
    with serving(url) as process:
        assert not any("tp_" in line for line in process.errors)
        process.key = next(line.strip() for line in first.splitlines() if "tp_" in line)
        assert process.call("GET", "/v1/api-keys")[0] == 200


def test_postgresql_is_not_migrated_unasked(postgres_empty: str) -> None:
    """On PostgreSQL `serve` refuses an old schema and says what to run; with --migrate it goes ahead."""
    done = subprocess.run(
        [COMMAND, "serve", "--port", "0"],
        env=environment(postgres_empty),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode != 0
    assert "tradepost migrate" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    run(environment(postgres_empty), "migrate")
    with serving(postgres_empty, "--migrate") as process:
        assert process.call("GET", "/readyz")[0] == 200


@pytest.mark.parametrize(
    ("workers", "given", "times"),
    [
        ("1", {"env": "production"}, 1),
        ("2", {"env": "production"}, 1),
        ("1", {"env": "production", "base_url": "https://api.example.com"}, 0),
        ("1", {}, 0),
    ],
)
def test_production_without_a_public_address_is_warned_of_once(
    new_database: Callable[[str], str], workers: str, given: dict[str, Any], times: int
) -> None:
    """Where links begin with whatever Host a caller sends, the log of the start says so, once, and what to set."""
    with serving(new_database("sqlite"), "--workers", workers, **given) as process:
        assert process.call("GET", "/readyz")[0] == 200
    said = [line for line in process.errors if "TRADEPOST_BASE_URL" in line]
    assert [" warning " in line for line in said] == [True] * times


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RATE_LIMIT", "many"),
        ("PORT", "eighty"),
        ("DATABASE_URL", "mysql://x"),
        ("API_VERSIONS", "{"),
        ("NO_SUCH_SETTING", "1"),
        ("LOG", "loud"),
        ("REDIS_URL", "localhost"),
        ("API_VERSIONS", '{"v9": {"sunset": "2027-01-01"}}'),
    ],
)
def test_a_bad_setting_stops_the_start_with_one_line(tmp_path: Path, name: str, value: str) -> None:
    """A setting that cannot be used is named in one line, with what it may be."""
    found = environment(f"sqlite:///{tmp_path}/x.db") | {f"TRADEPOST_{name}": value}
    with Forked(found, "serve") as child:
        said = child.errors.read()
        assert child.wait() == 1
    assert f"TRADEPOST_{name}" in said
    assert len(said.strip().splitlines()) == 1


def test_workers_share_one_port(engine: str, new_database: Callable[[str], str]) -> None:
    """Several workers serve one address over one store: what one wrote, all read; revocation reaches all."""
    with serving(new_database(engine), "--workers", "2") as process:
        status, made = process.call("POST", "/v1/users", {"name": "Ada", "email": "ada@example.com"})
        assert status == 201
        seen = [process.call("GET", f"/v1/users/{made['id']}")[0] for _ in range(20)]
        assert seen == [200] * 20
        text = _get_text(process, "/metrics")
        counted = [
            line
            for line in text.splitlines()
            if line.startswith("tradepost_requests_total") and "/v1/users/{id}" in line
        ]
        assert sum(float(line.rpartition(" ")[2]) for line in counted) >= 1


def _get_text(process: Process, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=20)
    connection.request("GET", path)
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def test_a_running_request_is_finished_at_shutdown(new_database: Callable[[str], str]) -> None:
    """SIGTERM stops accepting, and a request whose body is still arriving is answered all the same."""
    with serving(new_database("sqlite")) as process:
        body = json.dumps({"name": "Ada", "email": "ada@example.com"}).encode()
        announced = f"POST /v1/users HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {process.key}\r\n"
        head = f"{announced}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        with process.connect() as open_:
            open_.sendall(head + body[:10])
            ended: list[int] = []
            ending = threading.Thread(target=lambda: ended.append(process.end(signal.SIGTERM)))
            ending.start()
            _wait_until_refused(process.port)
            open_.sendall(body[10:])
            assert b" 201 " in read_answer(open_).partition(b"\r\n")[0]
        ending.join(30)
        assert ended in ([0], [-signal.SIGTERM])


def _wait_until_refused(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return
    pytest.fail("the server went on accepting")


def test_a_path_cannot_forge_a_line(new_database: Callable[[str], str]) -> None:
    """A line break in a path is encoded in the log, so that one request is one line in text form too."""
    with serving(new_database("sqlite"), log="text") as process:
        process.call("GET", "/v1/users/%0aforged")
        process.end()
        assert not any(line.startswith("forged") for line in process.errors)
        assert any("/v1/users/%0Aforged" in line for line in process.errors)


def test_every_request_leaves_one_canonical_line(new_database: Callable[[str], str]) -> None:
    """With TRADEPOST_LOG=json each request is one JSON line that carries the id the client was given."""
    with serving(new_database("sqlite"), log="json") as process:
        process.call("GET", "/v1/products", X_Request_Id="mine-1")
        process.call("GET", "/v1/nothing", X_Request_Id="mine-2")
        process.end()
        lines = [json.loads(line) for line in process.errors if line.startswith("{")]
    ours = {line["request_id"]: line for line in lines if str(line.get("request_id", "")).startswith("mine-")}
    assert (ours["mine-1"]["status"], ours["mine-1"]["route"]) == (200, "/v1/products")
    assert ours["mine-2"]["status"] == 404
    assert ours["mine-1"]["statements"] >= 1
