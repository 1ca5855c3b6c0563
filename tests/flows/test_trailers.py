"""Fields after a chunked body are dropped (RFC 9110, 6.5.1), and bounded as the head of a request is."""

import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import psutil
import pytest

from tests.flows.process import Process, read_answer, serving
from tests.shop import unique

HEADER_SECONDS = 1
FIELDS = [b"Checksum: 1", b"Idempotency-Key: k", b"X-Request-Id: chosen-in-a-trailer"]


@pytest.fixture(scope="module")
def server(new_database: Callable[[str], str]) -> Iterator[Process]:
    with serving(new_database("sqlite"), header_seconds=str(HEADER_SECONDS)) as process:
        yield process


def head(method: str, path: str, key: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: shop.example", "Transfer-Encoding: chunked"]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if method == "POST":
        lines.append("Content-Type: application/json")
    return "\r\n".join([*lines, "", ""]).encode()


def chunks(body: bytes, size: int = 20) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


def trailer(*fields: bytes) -> bytes:
    return b"0\r\n" + b"".join(field + b"\r\n" for field in fields) + b"\r\n"


def reading(key: str, *fields: bytes) -> bytes:
    """A GET whose body is nothing but a trailer."""
    return head("GET", "/v1/products", key) + trailer(*fields)


def posting(key: str, email: str, fields: Sequence[bytes] = ()) -> bytes:
    """A POST that makes a user, with a trailer."""
    body = json.dumps({"name": "Ada", "email": email}).encode()
    return head("POST", "/v1/users", key) + chunks(body) + trailer(*fields)


def status(answer: bytes) -> int:
    return int(answer.split()[1])


def wait(open_: socket.socket, seconds: float) -> bytes:
    """What the server sends within that time; nothing if it sends nothing."""
    open_.settimeout(seconds)
    try:
        return open_.recv(65536)
    except TimeoutError:
        return b""
    finally:
        open_.settimeout(20)


def is_closed(open_: socket.socket) -> bool:
    """Whether the server closes the connection; with a reset if there were bytes that it did not read."""
    try:
        return open_.recv(1) == b""
    except ConnectionResetError:
        return True


def users(server: Process, email: str) -> int:
    found = server.call("GET", f"/v1/users?email={email}")[1]
    return len(found["items"])


def test_a_key_in_a_trailer_does_not_authenticate(server: Process) -> None:
    """`Authorization` after the body is no credential."""
    answer = server.say(reading("", b"Authorization: Bearer " + server.key.encode()))
    assert status(answer) == 401


def test_a_host_in_a_trailer_has_no_effect(server: Process) -> None:
    """Links begin with the host of the head, whatever host the trailer names."""
    answer = server.say(reading(server.key, b'Host: evil.example/"><script>'))
    assert status(answer) == 200
    assert b"link: <http://shop.example/v1/products>" in answer
    assert b"evil" not in answer


def test_a_framing_field_in_a_trailer_frames_nothing(server: Process) -> None:
    """`Content-Length` after the body announces no further body, of this request or the next."""
    answer = server.say(reading(server.key, b"Content-Length: 5") + reading(server.key))
    assert status(answer) in (200, 400)


def test_a_small_trailer_is_taken_and_dropped(server: Process) -> None:
    """A request with a trailer is carried out as one without it: its fields name no request and no key."""
    emails = [f"{unique()}@shop.example" for _ in range(2)]
    for email in emails:
        answer = server.say(posting(server.key, email, FIELDS))
        assert status(answer) == 201
        assert b"chosen-in-a-trailer" not in answer
        assert b"replayed" not in answer.lower()
    assert [users(server, email) for email in emails] == [1, 1]


def test_a_connection_is_kept_after_a_trailer(server: Process) -> None:
    """One connection takes one request with a trailer after the other."""
    with server.connect() as open_:
        for _ in range(3):
            open_.sendall(posting(server.key, f"{unique()}@shop.example", FIELDS))
            assert status(read_answer(open_)) == 201
            open_.sendall(reading(server.key, *FIELDS))
            assert status(read_answer(open_)) == 200


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_pipelined_requests_are_answered_in_order_after_trailers(server: Process, size: int) -> None:
    """Requests sent at once are all answered, in whatever pieces they and their trailers arrive."""
    email = f"{unique()}@shop.example"
    sent = posting(server.key, email, FIELDS) + reading("", *FIELDS) + reading(server.key, *FIELDS)
    with server.connect() as open_:
        open_.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(sent), size):
            open_.sendall(sent[start : start + size])
        received = b""
        while received.count(b"HTTP/1.1 ") < 3 or not received.endswith(b"}"):
            received += open_.recv(65536)
    assert [int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:]] == [201, 401, 200]
    assert users(server, email) == 1


def test_a_large_body_before_a_trailer_does_not_count_against_it(server: Process) -> None:
    """Neither the body nor the next request is taken for a part of the trailer."""
    body = json.dumps({"name": "Ada", "email": f"{unique()}@shop.example"}).encode() + b" " * 200_000
    sent = head("POST", "/v1/users", server.key) + chunks(body, 65_536) + trailer(*FIELDS)
    with server.connect() as open_:
        for _ in range(2):
            open_.sendall(sent)
            assert status(read_answer(open_)) in (201, 409)


@pytest.mark.parametrize(
    "fields",
    [[b"X-%d: 1" % i for i in range(5000)], [b"X-%d: 1" % i for i in range(101)], [b"X: " + b"a" * 33_000]],
    ids=["5000 fields", "101 fields", "33 kB"],
)
def test_a_large_trailer_is_refused(server: Process, fields: list[bytes]) -> None:
    """A trailer beyond the head's bounds is 431 and closes the connection; the request is not carried out."""
    email = f"{unique()}@shop.example"
    with server.connect() as open_:
        open_.sendall(posting(server.key, email, fields))
        answer = read_answer(open_)
        assert status(answer) == 431
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["type"] == "/problems/too-large"
        assert is_closed(open_)
    assert users(server, email) == 0


def test_a_large_trailer_is_refused_before_its_end(server: Process) -> None:
    """A trailer that is too large by what has arrived is not waited for."""
    with server.connect() as open_:
        open_.sendall(posting(server.key, "never@shop.example", [b"a:b"] * 5000).removesuffix(b"\r\n"))
        assert status(read_answer(open_)) == 431


def test_a_refusal_is_not_taken_for_the_answer_to_another_request(server: Process) -> None:
    """While an earlier request waits for its answer, a trailer that is refused only closes the connection."""
    first = head("POST", "/v1/users", server.key) + chunks(b"{}") + trailer()
    with server.connect() as open_:
        open_.sendall(first + reading(server.key, b"X: " + b"a" * 33_000))
        assert b" 431 " not in read_answer(open_)


@pytest.mark.parametrize("piece", [b"a:b\r\n" * 1000, b"a" * 65_536], ids=["fields", "one field"])
@pytest.mark.parametrize("begun", [b"0\r\n", b"0\r\nX: "], ids=["alone", "begun"])
def test_an_endless_trailer_ends_the_connection(server: Process, begun: bytes, piece: bytes) -> None:
    """However it goes on, a trailer without end is cut off, after an answer too, and takes no memory."""
    before = psutil.Process(server.pid).memory_info().rss
    with server.connect() as open_:
        open_.sendall(head("GET", "/livez", ""))
        assert status(read_answer(open_)) == 200
        open_.sendall(begun)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            open_.sendall(piece * (64 * 1024 * 1024 // len(piece)))
    assert psutil.Process(server.pid).memory_info().rss - before < 8 << 20


DRIPS = [
    (b"0\r\n", b"a: b\r\n"),
    (b"0\r\n", b"a"),
    (b"0\r\nX-Slow: 1\r\n", b"a: b\r\n"),
    (b"0\r\nX-Slow: 1\r\n", b"a"),
    (b"0\r\nX-Slow: 1", b"a"),
    (b"0\r\nX-Slow: 1", b""),
    (b"0\r\nX-Slow: 1\r\nX: 2\r\n", b""),
]


def test_a_trailer_has_the_time_of_a_head(server: Process) -> None:
    """A trailer that drips or stops is answered 408 at the head's deadline, and its connection is closed."""
    with ExitStack() as life:
        waiting = [(life.enter_context(server.connect()), *drip) for drip in DRIPS]
        for open_, begun, _ in waiting:
            open_.sendall(head("POST", "/v1/users", server.key) + chunks(b"{}") + begun)
        deadline = time.monotonic() + 5
        while waiting:
            assert time.monotonic() < deadline
            for each in tuple(waiting):
                open_, _, drop = each
                if answer := wait(open_, 0.02):
                    assert status(answer) == 408
                    assert is_closed(open_)
                    waiting.remove(each)
                else:
                    open_.sendall(drop)


def test_a_trailer_that_drips_after_the_answer_is_cut(server: Process) -> None:
    """An answer that was given is followed by no other: the connection is closed."""
    with server.connect() as open_:
        open_.sendall(head("GET", "/livez", "") + b"0\r\nX: 1")
        assert status(read_answer(open_)) == 200
        assert is_closed(open_)


def test_a_slow_body_is_not_cut_at_the_deadline_of_the_head(server: Process) -> None:
    """A body may take longer than a head, wherever in a chunk it pauses."""
    with ExitStack() as life:
        paused = []
        for after in (b"", b"\r\n", b'"', b"}", b"}\r\n"):
            sent = posting(server.key, f"{unique()}@shop.example")
            begun = sent.index(b"\r\n\r\n") + 4
            until = sent.index(after, begun) + len(after)
            paused.append((life.enter_context(server.connect()), sent, until))
        for open_, sent, until in paused:
            open_.sendall(sent[:until])
        assert [wait(open_, HEADER_SECONDS * 1.2) for open_, _, _ in paused[:1]] == [b""]
        for open_, sent, until in paused:
            open_.sendall(sent[until:])
            assert status(read_answer(open_)) == 201
