"""A POST and its answer, as an ordinary receiver has it."""

import asyncio
import gc
import gzip
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.egress.receiving import (
    NO_CONTENT,
    TYPE,
    WAIT,
    Behaviour,
    Connection,
    answering,
    post,
    posting,
    receiving,
    replies,
)
from tests.egress.zone import Zone
from tests.waiting import turns
from tradepost import __version__
from tradepost.egress.client import Client
from tradepost.egress.targets import Targets

Run = Callable[[Coroutine[Any, Any, Any]], Any]


def ok(body: bytes, *fields: bytes) -> bytes:
    return b"\r\n".join([b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *fields, b"", body])


def test_what_is_sent_is_what_was_given(run: Run) -> None:
    """The request has the path and query, the headers and the body given, a user agent, and no more."""

    async def scene() -> None:
        async with receiving(answering(NO_CONTENT)) as receiver, posting() as client:
            url = f"{receiver.url}/%2F?a=%2F&b=c+d"
            reply = await client.post(url, [TYPE, ("X-Signature-256", "sha256=00")], b'{"a": "\xc3\xa4"}')
            assert (reply.status, reply.error, reply.body) == (204, None, b"")
            [(line, fields, body)] = receiver.requests
            assert line == "POST /hook/%2F?a=%2F&b=c+d HTTP/1.1"
            assert body == b'{"a": "\xc3\xa4"}'
            assert fields == {
                "Host": f"127.0.0.1:{receiver.port}",
                "Content-Type": "application/cloudevents+json",
                "X-Signature-256": "sha256=00",
                "User-Agent": f"tradepost/{__version__}",
                "Accept": "*/*",
                "Content-Length": "11",
            }

    run(scene())


@pytest.mark.parametrize("status", [200, 201, 299, 400, 404, 410, 429, 500, 503, 599])
def test_any_status_is_a_reply(run: Run, status: int) -> None:
    """Whatever the status, it is reported as it came, without an error."""
    [reply], _ = run(replies(answering(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status)))
    assert (reply.status, reply.error) == (status, None)
    assert 0 < reply.seconds < 5


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1025, 60_000])
def test_the_first_kibibyte_of_a_body_is_kept_and_the_connection_reused(run: Run, size: int) -> None:
    """Of a body that ends within 64 KiB 1,024 bytes are kept; the next POST goes over the same connection."""
    body = bytes(number % 251 for number in range(size))
    answers, receiver = run(replies(answering(ok(body)), 3))
    assert [reply.body for reply in answers] == [body[:1024]] * 3
    assert len(receiver.connections) == 1


def test_a_chunked_body_is_read_as_well(run: Run) -> None:
    """A body in chunks is put together, and its connection used again."""
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    answers, receiver = run(replies(answering(answer), 2))
    assert [reply.body for reply in answers] == [b"abcde"] * 2
    assert len(receiver.connections) == 1


def test_a_body_until_the_connection_ends_is_read(run: Run) -> None:
    """An answer of HTTP/1.0 without a length is read to the end of the connection."""

    async def behave(connection: Connection) -> None:
        await connection.request()
        await connection.say(b"HTTP/1.0 200 OK\r\n\r\nabc")

    answers, receiver = run(replies(behave, 2))
    assert [(reply.status, reply.body) for reply in answers] == [(200, b"abc")] * 2
    assert len(receiver.connections) == 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(run: Run, status: int) -> None:
    """A redirect is a reply with its status; nobody is asked at its location."""

    async def scene() -> None:
        async with receiving(answering(NO_CONTENT)) as other, posting() as client:
            answer = b"HTTP/1.1 %d X\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % (
                status,
                other.url.encode(),
            )
            async with receiving(answering(answer)) as receiver:
                assert (await post(client, receiver.url)).status == status
                assert len(receiver.requests) == 1
            assert not other.connections

    run(scene())


def test_cookies_are_not_kept(run: Run) -> None:
    """A cookie that a receiver sets never comes back to it."""
    answer = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Path=/\r\nContent-Length: 0\r\n\r\n"

    async def scene() -> None:
        zone = Zone(**{"shop.example.com": [["127.0.0.1"]]})
        async with receiving(answering(answer)) as receiver, posting(lookup=zone) as client:
            for _ in range(2):
                await post(client, f"http://shop.example.com:{receiver.port}/")
            assert [fields.get("Cookie") for _, fields, _ in receiver.requests] == [None, None]

    run(scene())


def test_the_environment_names_no_proxy(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies and credentials of the environment are not used."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    [reply], receiver = run(replies(answering(NO_CONTENT)))
    assert reply.status == 204
    assert "Proxy-Authorization" not in receiver.requests[0][1]


def test_a_compressed_body_stays_compressed(run: Run) -> None:
    """A body is bytes as they came, so that none of them becomes a thousand."""
    packed = gzip.compress(bytes(10_000_000))
    assert len(packed) < 60_000
    [reply], _ = run(replies(answering(ok(packed, b"Content-Encoding: gzip"))))
    assert reply.body == packed[:1024]


def test_interim_answers_are_passed_over(run: Run) -> None:
    """Answers like 103 Early Hints come before the one that counts, and the connection is used again."""
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
    answers, receiver = run(replies(answering(b"HTTP/1.1 100 Continue\r\n\r\n" + interim + NO_CONTENT), 2))
    assert [reply.status for reply in answers] == [204, 204]
    assert len(receiver.connections) == 1


@pytest.mark.parametrize(("sent", "seconds"), [(b"120", 120.0), (b"soon", None), (b"-1", None)])
def test_retry_after_is_read(run: Run, sent: bytes, seconds: float | None) -> None:
    """`Retry-After` is seconds, if it makes sense."""
    [reply], _ = run(replies(answering(ok(b"", b"Retry-After: " + sent))))
    assert reply.retry_after == seconds


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", "the connection was closed without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-", "the connection was closed without an answer"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "the answer could not be read: it is not HTTP"),
        (b"\x16\x03\x01\x00\x05hello", "the answer could not be read: it is not HTTP"),
        (b"HTTP/1.1 OK\r\n\r\n", "the answer could not be read: it is not HTTP"),
        (
            b"HTTP/1.1 200 OK\r\n: x\r\n\r\n",
            "the answer could not be read: its head is malformed or too long",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "the answer could not be read: its head is malformed or too long",
        ),
    ],
)
def test_what_is_no_answer_is_an_error_in_words(run: Run, answer: bytes, error: str) -> None:
    """Without a complete head there is no status; the error says why, and repeats nothing of what came."""

    async def behave(connection: Connection) -> None:
        await connection.request()
        await connection.say(answer)

    [reply], receiver = run(replies(behave))
    assert (reply.status, reply.error, reply.body, reply.retry_after) == (None, error, b"", None)
    assert len(receiver.requests) == 1


def cut(*answer: bytes) -> Behaviour:
    """Answers, and hangs up."""

    async def behave(connection: Connection) -> None:
        await connection.request()
        await connection.say(*answer)

    return behave


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzzz\r\n",
    ],
)
def test_a_body_that_breaks_off_takes_no_status_back(run: Run, answer: bytes) -> None:
    """A complete head decides: a body that is cut off or malformed ends there, and at once."""
    [reply], _ = run(replies(cut(answer)))
    assert (reply.status, reply.error) == (200, None)
    assert reply.body in {b"", b"abc"}
    assert reply.seconds < 5


@pytest.mark.parametrize("surplus", [b"ok", b"\r\n\r\nok", b"\x00", NO_CONTENT, 200 * NO_CONTENT])
@pytest.mark.parametrize("answer", [NO_CONTENT, ok(b"abc"), b"HTTP/1.1 103 Hints\n\n" + NO_CONTENT])
def test_what_comes_behind_an_answer_takes_nothing_back(run: Run, answer: bytes, surplus: bytes) -> None:
    """A 204 with a body, or more than was announced, is an answer all the same, and its connection's last."""
    answers, receiver = run(replies(cut(answer + surplus), 2))
    assert {(reply.status, reply.error) for reply in answers} <= {(204, None), (200, None)}
    assert len(receiver.connections) == 2


def test_an_answer_may_come_in_any_pieces(run: Run) -> None:
    """Wherever an answer is split on its way, with something wrong behind its head, it is the same answer."""
    whole = b"HTTP/1.1 103 H\r\nLink: x\r\n\r\nHTTP/1.1 204 N\r\nRetry-After: 3\r\n\r\nok"

    def split(at: int) -> Behaviour:
        async def behave(connection: Connection) -> None:
            await connection.request()
            await connection.say(whole[:at])
            for _ in range(3):  # turns of the loop, so that the client reads
                await asyncio.sleep(0)
            await connection.say(whole[at:])

        return behave

    async def scene() -> None:
        for at in range(len(whole)):
            [reply], _ = await replies(split(at))
            assert (reply.status, reply.retry_after) == (204, 3.0), at

    run(scene())


def test_a_malformed_body_ends_at_once(run: Run) -> None:
    """A receiver that sends nonsense for a chunk and then waits holds nobody."""

    async def behave(connection: Connection) -> None:
        await connection.request()
        await connection.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await connection.say(b"zzz\r\n")
        await connection.reader.read()

    [reply], _ = run(replies(behave))
    assert reply.status == 200
    assert reply.seconds < 5


def test_another_protocol_is_not_spoken(run: Run) -> None:
    """101 Switching Protocols is a reply like others, and the end of the connection."""
    answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello"
    answers, receiver = run(replies(answering(answer), 2))
    assert [reply.status for reply in answers] == [101, 101]
    assert len(receiver.connections) == 2


def test_nobody_there_is_an_error(run: Run) -> None:
    """A port that nobody listens on refuses the connection."""

    async def scene() -> None:
        async with receiving(answering(NO_CONTENT)) as receiver:
            url = receiver.url
        async with posting() as client:
            assert (await post(client, url)).error == "connection refused"

    run(scene())


def test_few_connections_are_kept_for_the_next_post(run: Run) -> None:
    """Beyond a bound, whoever the receivers are, a connection ends with its answer; those kept are used again."""

    async def scene() -> None:
        zone = Zone(**{f"host{number}.example.com": [["127.0.0.1"]] for number in range(6)})
        async with receiving(answering(NO_CONTENT)) as receiver, posting(lookup=zone, idle=2) as client:
            urls = [f"http://host{number}.example.com:{receiver.port}/" for number in range(6)]
            for _ in range(2):
                for url in urls:
                    assert (await post(client, url)).status == 204
            assert len(receiver.connections) == 6 + 4
            async with asyncio.timeout(WAIT):
                for connection in receiver.connections[2:]:
                    await connection.writer.wait_closed()
            assert not any(connection.reader.at_eof() for connection in receiver.connections[:2])

    run(scene())


def test_a_connection_that_ends_makes_room_for_another(run: Run) -> None:
    """Where a receiver ends a connection that was kept, that of another is kept in its place."""
    leaving = asyncio.Event()

    async def behave(connection: Connection) -> None:
        await connection.request()
        await connection.say(NO_CONTENT)
        await leaving.wait()

    async def scene() -> None:
        async with (
            receiving(behave) as left,
            receiving(answering(NO_CONTENT)) as kept,
            posting(idle=1) as client,
        ):
            await post(client, left.url)
            leaving.set()
            await left.ended.wait()
            for _ in range(20):
                await post(client, kept.url)
            assert len(kept.connections) < 20

    run(scene())


def test_a_connection_that_was_closed_meanwhile_is_not_used(run: Run) -> None:
    """A receiver that ends a kept-alive connection in between is asked over a new one."""

    async def behave(connection: Connection) -> None:
        await connection.request()
        await connection.say(NO_CONTENT)

    async def scene() -> None:
        async with receiving(behave) as receiver, posting() as client:
            for _ in range(3):
                assert (await post(client, receiver.url)).status == 204
                await receiver.ended.wait()
                receiver.ended.clear()
                await receiver.connections[-1].writer.wait_closed()
                await turns()  # the kernel tells the client
            assert len(receiver.connections) == 3

    run(scene())


def test_nothing_is_posted_twice(run: Run) -> None:
    """A receiver that reads a POST on a kept-alive connection and hangs up had it once: that is reported."""

    async def behave(connection: Connection) -> None:
        await connection.request()
        await connection.say(NO_CONTENT)
        await connection.request()

    answers, receiver = run(replies(behave, 2))
    assert [reply.status for reply in answers] == [204, None]
    assert answers[1].error == "the connection was closed without an answer"
    assert len(receiver.requests) == 2
    assert len(receiver.connections) == 1


def test_many_posts_at_once_do_not_wait_for_each_other(run: Run) -> None:
    """There is no bound on connections to a receiver here: those who post bound themselves."""
    arrived = asyncio.Barrier(150)

    async def behave(connection: Connection) -> None:
        await connection.request()
        await arrived.wait()
        await connection.say(NO_CONTENT)

    async def scene() -> None:
        async with receiving(behave) as receiver, posting() as client:
            answers = await asyncio.gather(*(post(client, receiver.url) for _ in range(150)))
            assert {reply.status for reply in answers} == {204}

    run(scene())


def test_a_post_that_is_cancelled_hangs_up(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """Who is cancelled hears so, the receiver sees the connection end, and nothing is left behind."""

    async def scene() -> None:
        reached = asyncio.Event()

        async def behave(connection: Connection) -> None:
            await connection.request()
            reached.set()
            await connection.reader.read()

        async with receiving(behave) as receiver, posting() as client:
            task = asyncio.create_task(post(client, receiver.url))
            await reached.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await receiver.ended.wait()
        gc.collect()

    run(scene())
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("ftp://127.0.0.1/", "the URL is not allowed: it must be an https or http URL"),
        ("http://169.254.169.254/", "the address is not allowed: a cloud's metadata address"),
        ("nonsense", "the URL is not allowed: it must be an https or http URL"),
    ],
)
def test_a_url_that_is_no_target_is_not_tried(run: Run, url: str, error: str) -> None:
    """A URL that is refused, perhaps since it was registered, is an error in words."""

    async def scene() -> None:
        async with posting() as client:
            reply = await post(client, url)
            assert (reply.status, reply.error) == (None, error)

    run(scene())


def test_whatever_goes_wrong_is_reported(run: Run) -> None:
    """A request that cannot even be written comes to an error, not to an exception."""

    async def scene() -> None:
        async with receiving(answering(NO_CONTENT)) as receiver, posting() as client:
            reply = await client.post(receiver.url, [("X-Odd", "a\r\nb")], b"{}")
            assert (reply.status, reply.error) == (None, "the request could not be made (ValueError)")
            assert not receiver.requests
            assert (await post(client, receiver.url)).status == 204

    run(scene())


def test_a_closed_client_makes_no_request(run: Run) -> None:
    """What is under way when the client is closed fails; what comes later is not tried."""

    async def scene() -> None:
        reached = asyncio.Event()

        async def behave(connection: Connection) -> None:
            await connection.request()
            reached.set()
            await connection.reader.read()

        async with receiving(behave) as receiver:
            targets = Targets(allow_private=True)
            client = Client(targets, seconds=10)
            task = asyncio.create_task(post(client, receiver.url))
            await reached.wait()
            await client.close()
            assert (await task).error is not None
            later = await post(client, receiver.url)
            assert later.error == "no more requests are made: the service is being stopped"
            assert len(receiver.connections) == 1
            await targets.close()

    run(scene())
