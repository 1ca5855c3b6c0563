"""What a hostile receiver can do to a client: take its seconds, and no more."""

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine, Sequence
from threading import Event
from typing import Any

import pytest

from tests.egress.receiving import (
    NO_CONTENT,
    WAIT,
    Behaviour,
    Connection,
    post,
    posting,
    receiving,
    replies,
    taken,
)
from tests.waiting import turns

Run = Callable[[Coroutine[Any, Any, Any]], Any]

SECONDS = 0.25
AT_LEAST = 0.24  # a loop's clock has whole milliseconds
AT_MOST = 2.0  # with what a busy machine adds
MEGABYTE = 1024 * 1024


async def never(connection: Connection) -> None:
    """Takes the request, and waits."""
    await connection.request()
    await connection.reader.read()


async def nothing_read(connection: Connection) -> None:
    """Takes not even the request."""
    await asyncio.Event().wait()


def dripping(text: bytes, *before: bytes) -> Behaviour:
    async def behave(connection: Connection) -> None:
        await connection.request()
        await connection.say(*before)
        await connection.drip(*[bytes([byte]) for byte in text])

    return behave


def flooding(piece: bytes, *before: bytes) -> Behaviour:
    async def behave(connection: Connection) -> None:
        await connection.request()
        await connection.say(*before)
        await connection.say_forever(piece)

    return behave


@pytest.mark.parametrize(
    "behave",
    [
        never,
        nothing_read,
        dripping(b"HTTP/1.1 200 OK\r\nX-Slow: aaaa"),
        dripping(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nX-Slow: a"),
        dripping(b"\r\n"),
        dripping(b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
def test_the_seconds_bound_everything_before_the_head(run: Run, behave: Behaviour) -> None:
    """However a receiver puts off its head, byte by byte or answer by answer, the time is up when it is up."""
    [reply], receiver = run(replies(behave, seconds=SECONDS))
    assert (reply.status, reply.error) == (None, "timed out after 0.25 s")
    assert AT_LEAST < reply.seconds < AT_MOST
    assert len(receiver.connections) == 1


def test_the_seconds_are_not_rounded_up() -> None:
    """Five seconds and more are kept to, too: aiohttp rounds those up to the next whole one of the loop's clock."""

    async def scene() -> None:
        now = asyncio.get_running_loop().time()
        seconds = 5 + (0.1 - now) % 1  # rounded up it would be 0.9 s more
        async with receiving(never) as receiver, posting(seconds=seconds) as client:
            reply = await post(client, receiver.url)
            assert reply.error is not None
            assert reply.error.startswith("timed out after")
            assert reply.seconds < seconds + 0.5

    asyncio.run(scene())


def test_the_seconds_bound_the_look_up(run: Run) -> None:
    """A name that is not answered for takes the seconds, and no connection is made afterwards."""
    speak = Event()

    def find(host: str) -> Sequence[str]:
        assert speak.wait(WAIT)
        return ["127.0.0.1"]

    async def scene() -> None:
        async with receiving(never) as receiver, posting(seconds=SECONDS, lookup=find) as client:
            reply = await post(client, f"http://shop.example.com:{receiver.port}/")
            assert reply.error == "timed out after 0.25 s"
            assert AT_LEAST < reply.seconds < AT_MOST
            speak.set()
            assert not receiver.connections

    run(scene())


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_large_body_that_nobody_takes_is_not_kept(run: Run, cancelled: bool) -> None:
    """When it is over what was not sent yet is thrown away, with the connection, instead of waiting."""
    size = 32 * MEGABYTE

    async def scene() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            async with posting(seconds=WAIT if cancelled else SECONDS) as client:
                url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
                task = asyncio.create_task(post(client, url, bytes(size)))
                accepted, _ = await asyncio.to_thread(listening.accept)
                with accepted:
                    assert await asyncio.to_thread(accepted.recv, 1, socket.MSG_PEEK)
                    if cancelled:
                        task.cancel()
                    await asyncio.wait([task])
                    assert task.cancelled() or task.result().error == "timed out after 0.25 s"
                    assert await asyncio.to_thread(taken, accepted) < size

    run(scene())


def test_an_answer_to_what_was_not_sent_yet_is_the_connections_last(run: Run) -> None:
    """A receiver that answers early, and takes no more of the request, has no further one on that connection."""

    async def behave(connection: Connection) -> None:
        await connection.reader.readuntil(b"\r\n\r\n")
        await connection.say(NO_CONTENT)
        await asyncio.Event().wait()

    async def scene() -> None:
        async with receiving(behave) as receiver, posting() as client:
            for _ in range(2):
                assert (await post(client, receiver.url, bytes(32 * MEGABYTE))).status == 204
            assert len(receiver.connections) == 2

    run(scene())


@pytest.mark.parametrize("head", [b"Content-Length: 1000000", b"Transfer-Encoding: chunked", b"X: y"])
def test_a_body_that_drips_takes_no_status_back(run: Run, head: bytes) -> None:
    """The head decides: of a body that does not come in time there is what came, and its connection is closed."""
    piece = b"1\r\na\r\n" if b"chunked" in head else b"a"

    async def behave(connection: Connection) -> None:
        await connection.request()
        await connection.say(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n")
        await connection.drip(piece)

    async def scene() -> None:
        async with receiving(behave) as receiver, posting(seconds=SECONDS) as client:
            reply = await post(client, receiver.url)
            assert (reply.status, reply.error) == (200, None)
            assert reply.body.startswith(b"a")
            assert AT_LEAST < reply.seconds < AT_MOST
            await receiver.ended.wait()

    run(scene())


@pytest.mark.parametrize("head", [b"Content-Length: 400000000", b"Transfer-Encoding: chunked", b"X: y"])
def test_a_body_that_never_ends_is_left(run: Run, head: bytes) -> None:
    """After 64 KiB of a body the connection is closed at once, and the status stands."""
    chunk = bytes(16 * 1024)
    piece = b"4000\r\n" + chunk + b"\r\n" if b"chunked" in head else chunk
    behave = flooding(piece, b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n")

    async def scene() -> None:
        async with receiving(behave) as receiver, posting() as client:
            reply = await post(client, receiver.url)
            assert (reply.status, reply.error, reply.body) == (200, None, bytes(1024))
            assert reply.seconds < AT_MOST
            await receiver.ended.wait()
            assert receiver.connections[0].sent < 16 * MEGABYTE

    run(scene())


@pytest.mark.parametrize("head", [b"Content-Length: 400000000", b"Transfer-Encoding: chunked", b"X: y"])
def test_a_long_body_is_not_waited_for(run: Run, head: bytes) -> None:
    """A body that pauses after more than 64 KiB takes no more of the seconds."""

    async def behave(connection: Connection) -> None:
        await connection.request()
        await connection.say(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n10001\r\n", bytes(0x10001))
        await connection.reader.read()

    async def scene() -> None:
        async with receiving(behave) as receiver, posting() as client:
            reply = await post(client, receiver.url)
            assert (reply.status, reply.error) == (200, None)
            assert reply.seconds < AT_MOST
            await receiver.ended.wait()

    run(scene())


TOO_LONG = "its head is malformed or too long"


@pytest.mark.parametrize(
    ("piece", "before", "error"),
    [
        (b"a" * 4096, b"HTTP/1.1 200 ", "a field of its head is too long"),
        (b"a" * 4096, b"HTTP/1.1 200 OK\r\nX-Long: ", "a field of its head is too long"),
        (b"a" * 4096, b"HTTP/1.1 200 OK\r\nX-Long", "a field of its head is too long"),
        (b"X-Many: a\r\n" * 50, b"HTTP/1.1 200 OK\r\n", TOO_LONG),
        (b"X-Many: " + b"a" * 8000 + b"\r\n", b"HTTP/1.1 200 OK\r\n", TOO_LONG),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 5000, b"", "it does not end"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: " + b"a" * 8000 + b"\r\n\r\n", b"", "it does not end"),
        (b"\r\n" * 8192, b"", "it does not end"),
    ],
)
def test_a_flood_is_refused(run: Run, piece: bytes, before: bytes, error: str) -> None:
    """A head without end, in one field, in many or in interim answers, is left long before the time is up."""

    async def scene() -> None:
        async with receiving(flooding(piece, before)) as receiver, posting() as client:
            reply = await post(client, receiver.url)
            assert (reply.status, reply.error) == (None, f"the answer could not be read: {error}")
            assert reply.seconds < WAIT / 2
            await receiver.ended.wait()
            assert receiver.connections[0].sent < 32 * MEGABYTE

    run(scene())


def test_a_flood_of_chunk_sizes_takes_no_status_back(run: Run) -> None:
    """An extension of a chunk that never ends is left when it is more than a whole answer may be."""
    behave = flooding(b"x" * 16384, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;")

    async def scene() -> None:
        async with receiving(behave) as receiver, posting() as client:
            reply = await post(client, receiver.url)
            assert (reply.status, reply.error, reply.body) == (200, None, b"")
            assert reply.seconds < WAIT / 2
            await receiver.ended.wait()

    run(scene())


UNASKED = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize("piece", [UNASKED, UNASKED * 5000, b"HTTP/1.1 100 Continue\r\n\r\n", b"x", b"\r\n"])
@pytest.mark.parametrize("again", [False, True])
def test_what_comes_unasked_ends_a_connection(run: Run, piece: bytes, again: bool) -> None:
    """What a receiver sends on an idle connection is neither kept nor taken for the answer to the next POST."""
    idle = asyncio.Event()

    async def behave(connection: Connection) -> None:
        await connection.request()
        await connection.say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await idle.wait()
        await connection.say(piece)
        if again:
            await connection.say_forever(piece)
        await connection.reader.read()

    async def scene() -> None:
        async with receiving(behave) as receiver, posting() as client, asyncio.timeout(WAIT):
            assert (await post(client, receiver.url)).status == 200
            idle.set()
            await receiver.ended.wait()
            assert receiver.connections[0].sent < 16 * MEGABYTE
            assert (await post(client, receiver.url)).status == 200
            assert len(receiver.connections) == 2

    run(scene())


def test_an_answer_too_many_is_nobodys(run: Run) -> None:
    """What comes with the end of a body is not taken for the answer to the next POST, either."""

    async def behave(connection: Connection) -> None:
        await connection.request()
        await connection.say(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na")
        await turns()  # the client has the head by now
        await connection.say(b"bc" + UNASKED)
        await connection.reader.read()

    answers, receiver = run(replies(behave, 2))
    assert [(reply.status, reply.body) for reply in answers] == [(200, b"abc")] * 2
    assert len(receiver.connections) == 2


def test_others_go_on_beside_a_hostile_receiver(run: Run) -> None:
    """While some receivers flood and others are silent, a good one is answered at once."""

    async def good(connection: Connection) -> None:
        while True:
            await connection.request()
            await connection.say(NO_CONTENT)

    floods = flooding(b"HTTP/1.1 100 Continue\r\n\r\n" * 5000)

    async def scene() -> None:
        async with (
            receiving(never) as silent,
            receiving(floods) as flooded,
            receiving(good) as receiver,
            posting() as client,
        ):
            waiting = [asyncio.create_task(post(client, silent.url)) for _ in range(20)]
            bad = [asyncio.create_task(post(client, flooded.url)) for _ in range(20)]
            began = time.monotonic()
            for _ in range(20):
                assert (await post(client, receiver.url)).status == 204
            assert time.monotonic() - began < AT_MOST
            assert all(reply.error for reply in await asyncio.gather(*bad))
            assert not any(each.done() for each in waiting)
            for each in waiting:
                each.cancel()

    run(scene())
