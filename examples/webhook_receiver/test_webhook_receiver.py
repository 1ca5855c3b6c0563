"""What a receiver owes its sender, held for the example: nothing lost, nothing twice, answered at once."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tradepost.webhooks.signature import sign

from . import receiver
from .receiver import MAX_BODY, Inbox, server

SECRETS = ("whsec_bmV3", "whsec_b2xk")


@contextmanager
def serving(path: Path, work: Callable[[dict[str, Any]], None]) -> Iterator[HTTPConnection]:
    """A connection to a receiver; at the end it has worked on all that it kept."""
    inbox = Inbox(str(path), work)
    with server(inbox, SECRETS, 0) as made:
        thread = Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        connection = HTTPConnection("127.0.0.1", made.server_port, timeout=20)
        try:
            yield connection
        finally:
            connection.close()
            made.shutdown()
            thread.join()
            inbox.close()


def delivered(
    connection: HTTPConnection, event_id: str, secret: str = SECRETS[0], *, spoilt: bool = False
) -> int:
    """What a delivery of an event is answered with."""
    event = {"id": event_id, "type": "order.placed", "signedat": datetime.now(UTC).isoformat()}
    body = json.dumps(event).encode()
    headers = {"X-Signature-256": sign(body, secret)}
    connection.request("POST", "/", body + b" " * spoilt, headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "inbox.db"


def test_an_event_is_worked_on_once_however_often_it_comes(path: Path) -> None:
    """A repetition is acknowledged and not worked on again, not even by a receiver that was started anew."""
    worked: list[str] = []
    for _ in range(2):
        with serving(path, lambda event: worked.append(event["id"])) as connection:
            assert [delivered(connection, each) for each in ("1", "2", "1")] == [204] * 3
    assert worked == ["1", "2"]


def test_both_secrets_of_a_rotation_are_taken(path: Path) -> None:
    """What is signed with any of the secrets is taken, and nothing else leaves a trace."""
    worked: list[str] = []
    with serving(path, lambda event: worked.append(event["id"])) as connection:
        assert [delivered(connection, each, each) for each in SECRETS] == [204, 204]
        assert delivered(connection, "other", "whsec_b3RoZXI=") == 401
        assert delivered(connection, "spoilt", spoilt=True) == 401
    assert worked == list(SECRETS)


def test_it_acknowledges_before_it_works(path: Path) -> None:
    """However long the work takes, a delivery is acknowledged at once."""
    may_end = Event()
    with serving(path, lambda _: assert_(may_end.wait(20))) as connection:
        assert [delivered(connection, each) for each in ("1", "2")] == [204, 204]
        may_end.set()


def assert_(holds: bool) -> None:
    assert holds


def test_what_failed_is_tried_again_after_a_restart(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An event whose work fails holds up no other, and is taken up at the next start, however old it is."""

    def fail(event: dict[str, Any]) -> None:
        worked.append(event["id"])
        if event["id"] == "1":
            raise ValueError

    worked: list[str] = []
    for event_ids in ("12", "13"):
        with serving(path, fail) as connection:
            assert {delivered(connection, each) for each in event_ids} == {204}
        age(path, 36)
    assert worked == ["1", "2", "1", "3"]
    assert "1 failed, and is tried again at the next start" in capsys.readouterr().out
    for _ in range(2):
        Inbox(str(path), lambda event: worked.append(event["id"])).close()
    assert worked[4:] == ["1"]


@pytest.mark.parametrize(("days", "times"), [(34, 1), (36, 2)])
def test_ids_are_forgotten_when_they_cannot_come_again(path: Path, days: int, times: int) -> None:
    """An id that was done is remembered for 35 days, and no longer."""
    worked: list[str] = []
    with serving(path, lambda event: worked.append(event["id"])) as connection:
        assert delivered(connection, "1") == 204
    age(path, days)
    for event_id in ("2", "1"):
        with serving(path, lambda event: worked.append(event["id"])) as connection:
            assert delivered(connection, event_id) == 204
    assert worked.count("1") == times


def age(path: Path, days: int) -> None:
    """Makes what was kept so many days old."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE inbox SET at = datetime('now', ?)", (f"-{days} days",))
        database.commit()


@pytest.mark.parametrize(
    ("words", "secrets", "said"),
    [
        ([], "whsec_bmV3", "usage: "),
        (["inbox.db"], "whsec_bmV3", "usage: "),
        (["inbox.db", "http"], "whsec_bmV3", "usage: "),
        (["inbox.db", "0", "more"], "whsec_bmV3", "usage: "),
        (["inbox.db", "0"], None, "set WEBHOOK_SECRETS"),
        (["inbox.db", "0"], " ", "set WEBHOOK_SECRETS"),
        (["inbox.db", "70000"], "whsec_bmV3", "cannot listen on port 70000"),
    ],
)
def test_what_cannot_start_says_why_and_ends(
    tmp_path: Path, words: list[str], secrets: str | None, said: str
) -> None:
    """Bad arguments, no secret and a port that cannot be had end the program with one line."""
    assert said in ended(tmp_path, *words, secrets=secrets)


def test_a_port_that_is_taken_ends_it(tmp_path: Path) -> None:
    """Where something else listens on the port, the program ends and does not hang."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        assert f"cannot listen on port {port}" in ended(tmp_path, "inbox.db", port, secrets="whsec_bmV3")


def ended(folder: Path, *words: str, secrets: str | None) -> str:
    """The one line with which the program ends in a failure."""
    kept = {name: value for name, value in os.environ.items() if name != "WEBHOOK_SECRETS"}
    done = subprocess.run(  # noqa: S603 (the arguments are those above)
        [sys.executable, receiver.__file__, *words],
        env=kept if secrets is None else kept | {"WEBHOOK_SECRETS": secrets},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done
    return done.stderr


def test_a_body_that_is_too_large_is_not_read(path: Path) -> None:
    """A request that announces more than a megabyte, or no length, is refused at once."""
    with serving(path, lambda _: None) as connection:
        for length in (str(MAX_BODY + 1), "many"):
            connection.putrequest("POST", "/")
            connection.putheader("Content-Length", length)
            connection.endheaders()
            assert connection.getresponse().status == 413
            connection.close()
