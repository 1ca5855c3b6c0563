"""`tradepost serve --welcome`: whoever runs it first finds data, a key, and lines that work as they stand."""

import http.client
import json
import re
import shlex
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.cli.conftest import asked
from tests.flows.forked import Forked
from tests.flows.process import environment, run


@contextmanager
def welcomed(url: str, folder: Path) -> Iterator[list[str]]:
    """What a server in this folder says, up to the last line of its welcome."""
    words, found = ("serve", "--welcome", "--port", "0"), environment(url, log="text,error")
    with Forked(found, *words, folder=folder) as running:
        try:
            said: list[str] = []
            for line in running.out:
                said.append(line.rstrip("\n"))
                if line.endswith("/v1/openapi.json\n"):
                    break
            yield said
        finally:
            running.send(signal.SIGTERM)
            running.wait()


def commands_in(said: list[str]) -> list[str]:
    """The lines to paste, each whole."""
    return [line for line in "\n".join(said).replace("\\\n", " ").splitlines() if line.startswith("curl ")]


def curl(line: str) -> tuple[int, dict[str, str], Any]:
    """What a line answers, asked as curl would ask."""
    words = shlex.split(line)[1:]
    headers: dict[str, str] = {}
    body = url = None
    while words:
        word = words.pop(0)
        if word == "-H":
            name, _, value = words.pop(0).partition(": ")
            headers[name] = value
        elif word == "-d":
            body = words.pop(0)
        elif word != "-i":
            url = word
    assert url is not None
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=20)
    connection.request("POST" if body else "GET", f"{parts.path}?{parts.query}", body, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    named = {name.lower(): value for name, value in answer.getheaders()}
    return answer.status, named, json.loads(content) if content else None


def test_the_lines_of_the_welcome_work_as_they_stand(
    new_database: Callable[[str], str], engine: str, tmp_path: Path
) -> None:
    """On an empty database: demo data, and lines that list, read, find nothing changed, place one order, query."""
    url = new_database(engine)
    with welcomed(url, tmp_path) as said:
        newest, one, same, order, query = commands_in(said)
        assert curl(newest)[0] == curl(one)[0] == 200
        assert curl(same)[0] == 304
        first, second = curl(order), curl(order)
        assert (first[0], second[0], second[1]["idempotency-replayed"]) == (201, 201, "true")
        assert first[2] == second[2]
        status, _, found = curl(query)
        assert (status, len(found["data"]["orders"]["nodes"])) == (200, 2)
        for address in (line for line in said if re.fullmatch(r"http\S+", line)):
            assert curl(f"curl {address}")[0] == 200 if address.endswith("json") else True
    counts = asked(url, "SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM orders)")
    assert counts == [(50, 201)]


def test_the_key_of_the_welcome_is_kept_for_its_owner_alone(
    new_database: Callable[[str], str], tmp_path: Path
) -> None:
    """The key stays from start to start, is made anew once it no longer works, and nobody else can read it."""
    url, file = new_database("sqlite"), tmp_path / "var" / "key"
    with welcomed(url, tmp_path):
        first = file.read_text()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with welcomed(url, tmp_path):
        assert file.read_text() == first
    ((key_id,),) = asked(url, "SELECT id FROM api_keys")
    run(environment(url), "keys", "revoke", key_id)
    file.chmod(0o644)
    with welcomed(url, tmp_path) as said:
        assert file.read_text() != first
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.read_text().strip() in commands_in(said)[0]
    assert asked(url, "SELECT count(*) FROM users") == [(50,)]
