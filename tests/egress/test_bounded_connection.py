"""Who has a say over a connection that is used by one POST after the other."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from aiohttp.client_proto import ResponseHandler
from aiohttp.http import StreamWriter

from tradepost.egress.bounded_connection import IdleConnections, RequestBody

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[asyncio.Transport, StreamWriter]]:
    """A connection as aiohttp has one, to somebody who reads nothing."""
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    with theirs:
        transport, handler = await loop.create_connection(lambda: ResponseHandler(loop), sock=ours)
        try:
            yield transport, StreamWriter(handler, loop)
        finally:
            transport.abort()
            await asyncio.sleep(0)  # the loop lets go of it


def test_a_request_that_is_done_has_no_say_any_more(run: Run) -> None:
    """Once the next POST goes out over a connection, the one before neither ends it nor declares it idle."""

    async def scene() -> None:
        async with connected() as (transport, writer):
            idle = IdleConnections(1)
            first, second = RequestBody(b"1", idle), RequestBody(b"2", idle)
            await first.write(writer)
            await second.write(writer)
            first.answered()
            first.abort()
            assert not transport.is_closing()
            second.abort()
            assert transport.is_closing()

    run(scene())


def test_a_connection_with_something_unsent_is_not_used_again(run: Run) -> None:
    """A receiver that answers without taking what is sent does not have it piled up."""

    async def scene() -> None:
        async with connected() as (transport, writer):
            for _ in range(1000):
                request = RequestBody(bytes(1024), IdleConnections(1))
                await request.write(writer)
                unsent = transport.get_write_buffer_size()
                request.answered()
                assert transport.is_closing() == bool(unsent)
                if unsent:
                    return
            raise AssertionError("somebody read it")

    run(scene())
