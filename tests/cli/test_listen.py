"""`tradepost listen`: deliveries over real sockets are verified, answered as asked, and told in a line each."""

import gzip
import io
import json
import os
import queue
import re
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.webhooks.receiving import OTHER, SECRET, Delivery, an_event, delivery, send
from tradepost.cli.app import app
from tradepost.webhooks.signature import sign

SECONDS = 20
PACKED = gzip.compress(b"{}")


class Output(io.StringIO):
    """Standard output whose lines can be waited for in another thread."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: queue.Queue[str] = queue.Queue()
        self._begun = ""

    def write(self, text: str) -> int:
        *whole, self._begun = (self._begun + text).split("\n")
        for line in whole:
            self._lines.put(line)
        return len(text)

    def line(self) -> str:
        return self._lines.get(timeout=SECONDS)

    def rest(self) -> list[str]:
        """What was printed and not read; only once nothing is printed any more."""
        return [self._lines.get_nowait() for _ in range(self._lines.qsize())]


class Running(NamedTuple):
    """A listener that runs: its address, the line that told it, and what it prints next."""

    url: str
    told: str
    output: Output

    def deliver(self, sent: Delivery, path: str = "/") -> tuple[int, str]:
        """What a delivery is answered with, and the line printed about it."""
        status, _ = send(self.url + path, sent)
        return status, self.output.line()


Visit = Callable[[Running], None]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No key but a test's own; and what the command does not end by itself fails the test, not the run."""
    monkeypatch.delenv("TRADEPOST_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    before = {number: signal.signal(number, _unhandled) for number in numbers}
    signal.alarm(6 * SECONDS)
    yield
    signal.alarm(0)
    for number in numbers:
        signal.signal(number, before[number])


def _unhandled(number: int, _frame: object) -> None:
    raise SystemExit(f"signal {number} was not handled")


def listening(visit: Visit, *words: str, by: int = signal.SIGTERM) -> list[str]:
    """Runs the command until `visit`, in a thread, is through; then it gets the signal, and has to end with 0.

    Returns the lines it printed meanwhile that were not read.
    """
    output = Output()

    def visiting() -> None:
        try:
            told = output.line()
            address = re.search(r"http://\S+?(?=,|$)", told)
            assert address, told
            visit(Running(address[0], told, output))
        finally:
            os.kill(os.getpid(), by)

    with ThreadPoolExecutor(1) as threads:
        visited: Future[None] = threads.submit(visiting)
        with redirect_stdout(output):
            assert command("--port", "0", *words) is None
        visited.result(timeout=SECONDS)
    return output.rest()


def command(*words: str) -> Any:
    return app(["listen", *words], result_action="return_value", exit_on_error=False)


def ending(*words: str) -> str:
    """The line with which the command ends instead of listening."""
    with pytest.raises(SystemExit) as ended:
        command(*words, *([] if "--port" in words else ["--port", "0"]))
    assert isinstance(ended.value.code, str)  # printed on standard error, and the exit status is 1
    assert "\n" not in ended.value.code
    return ended.value.code


# --- what arrives ---


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_verified_delivery_is_a_line(by: int) -> None:
    """A good delivery is answered 204 and told in one line; SIGINT and SIGTERM end the command with status 0."""
    event = an_event()

    def visit(running: Running) -> None:
        status, line = running.deliver(delivery(event, attempt=2))
        assert status == 204
        when, *told = line.split("  ")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", when)
        assert told == [event.type, event.subject, "attempt 2", "verified", "answered 204"]

    assert listening(visit, "--secret", SECRET, by=by) == []


@pytest.mark.parametrize(
    ("spoilt", "reason"),
    [
        (lambda: delivery(an_event(), secret=OTHER), "another secret"),
        (lambda: delivery(an_event(), age=400), r"signed 4\d\d s ago"),
        (lambda: delivery(an_event(), age=-400), "in the future"),
        (lambda: delivery(an_event())._replace(headers={}), "no signature"),
        (lambda: delivery(an_event())._replace(body=b"\x1b[2J"), "another body"),
        (
            lambda: Delivery(PACKED, {"X-Signature-256": sign(PACKED, SECRET), "Content-Encoding": "gzip"}),
            "is signed, but is not JSON",
        ),
    ],
)
def test_what_cannot_be_verified_is_refused(spoilt: Callable[[], Delivery], reason: str) -> None:
    """A bad delivery is answered 401 whatever is asked for, and the line says why."""

    def visit(running: Running) -> None:
        for path in ("/", "/200"):
            status, line = running.deliver(spoilt(), path)
            assert status == 401
            assert re.search(f"not verified: .*{reason}.*  answered 401$", line)

    listening(visit, "--secret", SECRET)


def test_an_event_that_came_before_is_told_apart() -> None:
    """A second delivery of an event says `again`; one that was not verified did not count as the first."""
    event = an_event()

    def visit(running: Running) -> None:
        sent = [delivery(event, secret=OTHER), *(delivery(event, attempt=n) for n in (0, 1))]
        lines = [running.deliver(each)[1] for each in [*sent, delivery(an_event())]]
        assert ["again" in line for line in lines] == [False, False, True, False]

    listening(visit, "--secret", SECRET)


def test_the_ids_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many ids are remembered: the oldest are forgotten first."""
    monkeypatch.setattr("tradepost.cli.receiver._REMEMBERED_IDS", 2)
    one, two, three = (delivery(an_event()) for _ in range(3))

    def visit(running: Running) -> None:
        lines = [running.deliver(each)[1] for each in (one, two, three, three, two, one)]
        assert ["again" in line for line in lines] == [False, False, False, True, True, False]

    listening(visit, "--secret", SECRET)


def test_both_secrets_of_a_rotation_are_taken() -> None:
    """With --secret twice, a delivery signed with either is verified."""

    def visit(running: Running) -> None:
        assert [running.deliver(delivery(an_event(), secret=each))[0] for each in (SECRET, OTHER)] == [
            204
        ] * 2

    listening(visit, "--secret", OTHER, "--secret", SECRET)


def test_nothing_that_arrives_reaches_the_terminal_raw() -> None:
    """Control characters of a delivery are printed as escapes, in its line and in its body."""
    wild = delivery(an_event(type="\x1b[2J\n\x9b", subject="s" * 5000), secret=OTHER)

    def visit(running: Running) -> None:
        _, line = running.deliver(wild)
        assert r"\u001b[2J\n\u009b  sss" in line
        assert len(line) < 1000

    printed = "".join(listening(visit, "--secret", SECRET, "--verbose"))
    assert printed.isprintable()
    assert printed.isascii()


def test_verbose_prints_the_body() -> None:
    """With --verbose the body follows the line, JSON indented."""
    event = an_event()
    sent = delivery(event)
    lines = listening(lambda running: running.deliver(sent) and None, "--secret", SECRET, "--verbose")
    assert json.loads("\n".join(lines)) == json.loads(sent.body)
    assert lines[0] == "{"


# --- what is answered ---


def test_deliveries_are_answered_as_asked() -> None:
    """By the path if it is an answer, else as --answer says, or PUT /answer said since."""

    def visit(running: Running) -> None:
        def answered(path: str) -> int:
            status, line = running.deliver(delivery(an_event()), path)
            assert line.endswith(f"verified  answered {status}")
            return status

        assert [answered(path) for path in ("/", "/500", "/410", "/299", "/100", "/answer")] == [
            503,
            500,
            410,
            299,
            503,
            503,
        ]
        assert send(f"{running.url}/answer", Delivery(b"429\n", {}), "PUT") == (204, b"")
        assert [answered(path) for path in ("/", "/x/500", "/200")] == [429, 429, 200]
        for wrong in (b"", b"600", b"maybe", b"\xff"):
            status, said = send(f"{running.url}/answer", Delivery(wrong, {}), "PUT")
            assert (status, b"a status from 200 to 599, or hang" in said) == (400, True)
        assert answered("/") == 429

    listening(visit, "--secret", SECRET, "--answer", "503")


@pytest.mark.parametrize("how", ["path", "option", "put"])
def test_a_delivery_can_be_left_hanging(how: str) -> None:
    """Asked to hang it answers nothing and goes on with others; at the end, which comes at once, it answers 503."""
    waiting: list[socket.socket] = []

    def visit(running: Running) -> None:
        if how == "put":
            send(f"{running.url}/answer", Delivery(b"hang", {}), "PUT")
        for gone in (True, False):
            open_ = begun(running.url, "/hang" if how == "path" else "/", delivery(an_event()))
            assert running.output.line().endswith("verified  left hanging")
            if gone:
                open_.close()
            else:
                waiting.append(open_)
        assert running.deliver(delivery(an_event()), "/202")[0] == 202
        waiting[0].setblocking(False)
        with pytest.raises(BlockingIOError):
            waiting[0].recv(1)

    listening(visit, "--secret", SECRET, *(["--answer", "hang"] if how == "option" else []))
    with waiting[0] as left:
        left.settimeout(SECONDS)
        assert left.recv(100).startswith(b"HTTP/1.1 503 ")


def begun(url: str, path: str, sent: Delivery) -> socket.socket:
    """A connection over which a delivery was sent, and nothing was read."""
    parts = urlsplit(url)
    open_ = socket.create_connection((parts.hostname, parts.port), timeout=SECONDS)
    fields = {"Host": parts.netloc, "Content-Length": str(len(sent.body)), **sent.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    open_.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + sent.body)
    return open_


# --- a stand-in for the service, in which the listener registers ---


class Service:
    """Answers what it is told to, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str, Any]] = []
        self.answers: dict[str, tuple[int, Any]] = {
            "POST": (201, {"id": "e-1", "secret": SECRET, "url": "…"}),
            "DELETE": (204, None),
        }
        self.meanwhile: Callable[[str], None] = lambda url: None

    @contextmanager
    def serving(self) -> Iterator[str]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
                service.asked.append((self.command, self.path, self.headers["Authorization"], body))
                if body:
                    service.meanwhile(body["url"])
                status, said = service.answers[self.command]
                self.send_response(status)
                self.send_header("Location", "/elsewhere")
                self.end_headers()
                if status != 204:
                    self.wfile.write(said if isinstance(said, bytes) else json.dumps(said).encode())

            do_GET = do_POST = do_DELETE = _answer  # noqa: N815 (named so by http.server)

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}"
            finally:
                server.shutdown()
                thread.join()


def test_it_registers_itself_and_is_gone_afterwards() -> None:
    """With --register an endpoint is made for the types asked for, its secret verifies, and it is removed at the end."""
    service, events = Service(), ("order.placed,order.cancelled", "user.*")

    def visit(running: Running) -> None:
        assert running.told.endswith(f", as endpoint e-1 of {url}")
        assert running.deliver(delivery(an_event()))[0] == 204
        ((method, path, key, body),) = service.asked
        assert (method, path, key) == ("POST", "/v1/webhook-endpoints", "Bearer tp_key")
        assert body == {
            "url": f"{running.url}/",
            "eventTypes": ["order.placed", "order.cancelled", "user.*"],
            "description": "tradepost listen",
        }

    with service.serving() as url:
        listening(visit, "--register", f"{url}/", "--key", "tp_key", "--events", *events)
    assert service.asked[1:] == [("DELETE", "/v1/webhook-endpoints/e-1", "Bearer tp_key", None)]


@pytest.mark.parametrize("where", ["option", "environment", "file"])
def test_the_key_is_found_where_it_is_kept(
    where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The key is that of --key, else of TRADEPOST_KEY, else of the file var/key, without loading the service."""
    monkeypatch.setitem(sys.modules, "tradepost.assembly", None)
    (tmp_path / "var").mkdir()
    (tmp_path / "var/key").write_text("tp_file\n")
    if where != "file":
        monkeypatch.setenv("TRADEPOST_KEY", "tp_environment")
    given = ["--key", "tp_option"] if where == "option" else []
    service = Service()
    with service.serving() as url:
        listening(lambda running: None, "--register", url, *given)
    assert service.asked[0][2] == f"Bearer tp_{where}"
    assert service.asked[0][3]["eventTypes"] == ["*"]


def test_a_delivery_may_come_before_the_answer() -> None:
    """What is delivered while the endpoint is still being made is verified all the same."""
    service, sending = Service(), ThreadPoolExecutor(1)
    sent: list[Future[tuple[int, bytes]]] = []
    connected: list[socket.socket] = []

    def meanwhile(url: str) -> None:
        connected.append(begun(url.rstrip("/"), "/", delivery(an_event())))
        sent.append(sending.submit(send, url, delivery(an_event())))

    def visit(running: Running) -> None:
        assert sent[0].result(timeout=SECONDS)[0] == 204
        assert b"204" in connected[0].recv(100)
        connected[0].close()

    service.meanwhile = meanwhile
    with service.serving() as url, sending:
        lines = listening(visit, "--register", url, "--key", "tp_key")
    assert ["verified" in line and "not" not in line for line in lines] == [True, True]


def test_it_is_reached_on_this_machine_when_it_listens_everywhere() -> None:
    """Bound to every address, it registers the loopback one."""
    service = Service()
    with service.serving() as url:
        listening(lambda running: None, "--register", url, "--key", "k", "--host", "0.0.0.0")
    assert service.asked[0][3]["url"].startswith("http://127.0.0.1:")


def problem(status: int, detail: str, *errors: tuple[str, str]) -> tuple[int, Any]:
    return status, {"detail": detail, "errors": [{"field": f, "message": m, "code": "c"} for f, m in errors]}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (problem(401, "The API key is unknown"), "does not accept the API key; set another with --key or TRADEPOST_KEY"),
        (problem(403, "The key lacks webhooks:write"), "answered 403: The key lacks webhooks:write"),
        (
            problem(422, "is bad", ("url", "must be an https URL")),
            "must run with TRADEPOST_WEBHOOK_ALLOW_PRIVATE=1 (url must be an https URL)",
        ),
        (
            problem(422, "is bad", ("eventTypes[0]", "matches no type")),
            "answered 422: eventTypes[0] matches no type",
        ),
        ((500, b"<html>"), "answered 500: nothing that tradepost would say"),
        ((201, {"id": 7}), "answered 201: nothing that tradepost would say"),
        ((302, b""), "answered 302"),
    ],
)  # fmt: skip
def test_what_the_service_refuses_ends_it_with_a_line(answer: tuple[int, Any], said: str) -> None:
    """A refusal is one clear line, with what to do; nothing is left to be removed."""
    service = Service()
    service.answers["POST"] = answer
    with service.serving() as url:
        assert said in ending("--register", url, "--key", "tp_key")
    assert len(service.asked) == 1


def test_an_endpoint_that_stays_behind_is_told() -> None:
    """If the endpoint cannot be removed at the end, the line says which one, and the status is 1."""
    service = Service()
    service.answers["DELETE"] = problem(503, "The database is away")
    with service.serving() as url, pytest.raises(SystemExit) as ended:
        listening(lambda running: None, "--register", url, "--key", "tp_key")
    assert ended.value.code == (
        f"tradepost: endpoint e-1 was not deleted: {url} answered 503: The database is away"
    )


def test_an_endpoint_that_somebody_removed_is_no_failure() -> None:
    """Whoever deletes the endpoint meanwhile spares the command that work."""
    service = Service()
    service.answers["DELETE"] = problem(404, "There is nothing here")
    with service.serving() as url:
        listening(lambda running: None, "--register", url, "--key", "tp_key")
    assert [method for method, *_ in service.asked] == ["POST", "DELETE"]


# --- what it cannot begin with ---


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "set --secret whsec_…, or --register"),
        (["--secret", ""], "set --secret whsec_…, or --register"),
        (["--secret", "s", "--answer", "199"], "--answer must be a status from 200 to 599, or hang, not '199'"),
        (["--secret", "s", "--answer", "²00"], "--answer must be"),
        (["--secret", "s", "--port", "65536"], "--port must be from 0 to 65535, not 65536"),
        (["--secret", "s", "--port", "-1"], "--port must be"),
        (["--secret", "s", "--host", "192.0.2.1"], "cannot listen on 192.0.2.1:0"),
        (["--register", "localhost:8000", "--key", "k"], "--register must be a URL such as"),
        (["--register", "http://[", "--key", "k"], "no service answers at http://[ ("),
        (["--register", "http://127.0.0.1:1"], "--register needs an API key: set --key or TRADEPOST_KEY"),
        (["--register", "http://127.0.0.1:1", "--key", " "], "--register needs an API key"),
        (["--register", "http://127.0.0.1:1", "--key", "k"], "no service answers at http://127.0.0.1:1 ("),
        (["--register", "http://127.0.0.1:1", "--key", "a\nb"], "no service answers at"),
    ],
)  # fmt: skip
def test_what_is_given_wrong_ends_it_with_a_line(words: list[str], said: str) -> None:
    """A bad argument, or a service that is not there, is one clear line that says what to do."""
    line = ending(*words)
    assert line.startswith("tradepost: ")
    assert said in line


def test_a_port_that_is_taken_is_told() -> None:
    """Where something else listens, the line names the address and the way out."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert ending("--secret", "s", "--port", str(port)).startswith(
            f"tradepost: cannot listen on 127.0.0.1:{port} (Address already in use"
        )
