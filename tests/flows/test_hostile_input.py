"""Whatever a socket sends gets a clear problem or a closed connection, and nobody else feels it."""

import json
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from tests.flows.process import Process, read_answer, serving


@pytest.fixture(scope="module")
def server(new_database: Callable[[str], str]) -> Iterator[Process]:
    with serving(new_database("sqlite"), header_seconds="1") as process:
        yield process


def head(*lines: str, key: str = "") -> bytes:
    credentials = [f"Authorization: Bearer {key}"] if key else []
    return "\r\n".join(
        ["GET /v1/products HTTP/1.1", "Host: shop.example", *credentials, *lines, "", ""]
    ).encode()


def problem(answer: bytes) -> dict[str, object]:
    found: dict[str, object] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return found


HEADS = {
    "thousands of fields": (head(*[f"X-{i}: 1" for i in range(5000)]), 431),
    "a field of two megabytes": (head("X-Long: " + "a" * 2_000_000), 431),
    "a path of a hundred thousand letters": (
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        431,
    ),
    "no host": (b"GET /v1/products HTTP/1.1\r\n\r\n", 400),
    "two hosts": (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    "not HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "a path that is not ASCII": (b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "NUL in a field": (b"GET / HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n", 400),
    "two lengths": (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
    "a negative length": (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
    "length and chunks": (
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_bad_head_gets_a_problem_and_a_closed_connection(server: Process, name: str) -> None:
    """A head that cannot be right is refused with a problem, or the connection is closed at once."""
    data, status = HEADS[name]
    answer = server.say(data)
    if answer:
        assert int(answer.split()[1]) == status
        assert problem(answer)["status"] == status


NO_HOSTS = [
    *(
        b"",
        b" ",
        b"a b",
        b"a\tb",
        b":80",
        b"[]",
        b"[::1",
        b"::1",
        b"[:::]",
        b"[1::2::3]",
        b"[v1.a]",
        b"[::1%25eth0]",
    ),
    *(
        b"a:b",
        b"a:-1",
        b"a:123456",
        b"a:80:80",
        b"[::1]80",
        b"[::1]:x",
        b"a" * 256,
        b"http://a",
        b"a/b",
        b"a?b",
        b"a#b",
    ),
    *(
        b"u:p@evil.example",
        b"evil.example/path?x=",
        b'x>; rel="next", <http://evil',
        b"a,b",
        b"a;b",
        b"a'b",
        b"(a)",
    ),
    *(b"a%0d%0ab", "bücher.example".encode(), b"a\xff", b"a\\b", b"a|b", b"{a}", b"$a", b"a*b"),
]
HOSTS = [
    *(
        b"shop.example",
        b"shop.example:8000",
        b"Shop.Example.",
        b"my_service:80",
        b"xn--bcher-kva.example",
        b"a~b",
        b"x:",
    ),
    *(b"127.0.0.1:65535", b"[::1]", b"[2001:DB8::7]:443", b"[::ffff:192.0.2.1]", b"a" * 255),
]


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
@pytest.mark.parametrize("upgrade", [b"", b"Connection: Upgrade\r\nUpgrade: websocket\r\n"])
@pytest.mark.parametrize("host", NO_HOSTS)
def test_an_impossible_host_is_refused(server: Process, host: bytes, upgrade: bytes, version: bytes) -> None:
    """What is no host with or without a port is 400, for an upgrade too."""
    answer = server.say(b"GET /livez HTTP/%b\r\nHost: %b\r\n%b\r\n" % (version, host, upgrade))
    assert answer.split()[1] == b"400"
    assert problem(answer)["type"] == "/problems/malformed-request"


@pytest.mark.parametrize("host", HOSTS)
def test_links_begin_with_the_host_that_was_asked(server: Process, host: bytes) -> None:
    """A name, an IPv4 address or an IPv6 address in brackets, with or without a port, is taken; space around it is no part of it."""
    asked = head(key=server.key).replace(b"shop.example", b" \t" + host + b" \t", 1)
    answer = server.say(asked)
    assert answer.split()[1] == b"200"
    assert b"link: <http://%b/v1/products>" % host in answer


def test_a_host_is_looked_at_in_every_request_of_a_connection(server: Process) -> None:
    """A connection whose first request was right is closed at the first that names no host."""
    with server.connect() as open_:
        open_.sendall(head(key=server.key))
        assert b" 200 " in read_answer(open_).partition(b"\r\n")[0]
        open_.sendall(head(key=server.key).replace(b"shop.example", b"a/b", 1))
        assert b" 400 " in read_answer(open_).partition(b"\r\n")[0]
        assert open_.recv(1) == b""


@pytest.mark.parametrize(
    "target", [b"*", b"//", b"/%00", b"/%ff%fe", b"/v1/users/%2e%2e/x", b"http://x/v1/none"]
)
def test_a_strange_target_is_not_found(server: Process, target: bytes) -> None:
    """Whatever form a request's target has, what names nothing is 404, never a failure of ours."""
    answer = server.say(b"OPTIONS " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.split()[1] == b"404"
    assert problem(answer)["status"] == 404


@pytest.mark.parametrize(
    "target",
    [
        "/v1/users%0d%0ax-evil:%201?limit=1",
        "/v1/users/%0d%0ax-evil:%201",
        "/v1/users?cursor=%0d%0ax-evil:%201",
        "/users?version=1&limit=1&name=%0d%0ax-evil:%201",
        "/v1/events?subject=%0d%0ax-evil:%201",
    ],
)
def test_nothing_sent_becomes_a_field_of_the_answer(server: Process, target: str) -> None:
    """A line break in a path or a query ends no line of the answer, where addresses are sent back too."""
    answer = server.say(head(key=server.key).replace(b"/v1/products", target.encode(), 1))
    assert answer.startswith(b"HTTP/1.1 ")
    assert b"\r\nx-evil" not in answer.partition(b"\r\n\r\n")[0].lower()


@pytest.mark.parametrize("begun", [b"", b"GET /v1/prod", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: 1"])
def test_a_half_sent_head_is_not_waited_for(server: Process, begun: bytes) -> None:
    """A connection that does not finish its head in time is answered 408 and closed."""
    with server.connect() as open_:
        open_.sendall(begun)
        began = time.monotonic()
        answer = read_answer(open_)
        assert b" 408 " in answer.partition(b"\r\n")[0]
        assert time.monotonic() - began < 5
        assert open_.recv(1) == b""


def test_a_slow_head_after_a_good_request_is_not_waited_for(server: Process) -> None:
    """The deadline holds for every head of a kept connection, not only for the first."""
    with server.connect() as open_:
        open_.sendall(head(key=server.key))
        assert b" 200 " in read_answer(open_).partition(b"\r\n")[0]
        open_.sendall(b"GET /v1/products HTTP/1.1\r\nHos")
        assert b" 408 " in read_answer(open_).partition(b"\r\n")[0]


def test_a_large_body_is_refused_before_it_is_read(server: Process) -> None:
    """A body announced as 64 MB is refused with 413 without being waited for."""
    announced = f"POST /v1/users HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n"
    answer = server.say(
        (announced + "Content-Type: application/json\r\nContent-Length: 67108864\r\n\r\n").encode()
    )
    assert b" 413 " in answer.partition(b"\r\n")[0]
    assert b"connection: close" in answer


def test_a_large_chunked_body_is_refused_and_not_kept(server: Process) -> None:
    """64 MB in chunks of unknown number are refused at the limit; the process does not grow by them."""
    before = psutil.Process(server.pid).memory_info().rss
    announced = f"POST /v1/users HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n"
    start = (announced + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n").encode()
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    answer = server.say(start + chunk * 1024 + b"0\r\n\r\n")
    if answer:
        assert b" 413 " in answer.partition(b"\r\n")[0]
    assert psutil.Process(server.pid).memory_info().rss - before < 16 << 20


def test_others_are_served_meanwhile(server: Process) -> None:
    """While a hundred connections dawdle, others are answered as ever."""
    dawdling = [server.connect() for _ in range(100)]
    for each in dawdling:
        each.sendall(b"POST /v1/users HTTP/1.1\r\nHost: x\r\nContent-Le")
    began = time.monotonic()
    assert server.call("GET", "/v1/products")[0] == 200
    assert time.monotonic() - began < 0.5
    for each in dawdling:
        each.close()


def test_bad_bodies_leave_no_memory_behind(server: Process) -> None:
    """A thousand hostile bodies are all refused as the client's fault, and the process does not grow."""
    bodies = [
        b"[" * 10_000,
        b'{"a":' * 10_000,
        b'{"name": NaN}',
        b"\xff\xfe",
        b'{"name":"' + b"a" * 1_000_000 + b'"}',
    ]
    announced = f"POST /v1/users HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n"

    def send(count: int) -> set[bytes]:
        seen = set()
        with server.connect() as open_:
            for i in range(count):
                body = bodies[i % len(bodies)]
                length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                open_.sendall((announced + length).encode() + body)
                seen.add(read_answer(open_).split()[1])
        return seen

    send(100)
    before = psutil.Process(server.pid).memory_info().rss
    assert send(1000) <= {b"400", b"422"}
    assert psutil.Process(server.pid).memory_info().rss - before < 16 << 20
