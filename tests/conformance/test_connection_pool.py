"""The connections to PostgreSQL: none waits idle while a caller waits, none is given out that was lost."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncpg
import pytest

from tests.conformance.store import sql
from tests.service import Service
from tradepost.problems import Unavailable
from tradepost.storage.connection_pool import ConnectionPool
from tradepost.storage.database import Database, Writing

T = TypeVar("T")
NOW = sql("SELECT 1")
SLOW = sql("SELECT pg_sleep(30)")


@pytest.fixture
def narrow(new_service: Callable[..., Service]) -> Service:
    """A service with two connections, so that they are soon all in use."""
    return new_service("postgresql", database_pool="2")


def database_of(service: Service) -> Database:
    return service.app.rest.performer.database


async def _one(database: Database) -> Any:
    row = await database.reading().row(NOW)
    assert row is not None
    return row[0]


def test_readers_and_writers_share_few_connections(narrow: Service) -> None:
    """Many more at once than there are connections: each gets its turn, and none waits for an idle one."""
    database = database_of(narrow)

    async def write(tx: Writing) -> Any:
        return await tx.row(NOW)

    async def all_() -> list[Any]:
        works = [_one(database) if i % 2 else database.write(write) for i in range(60)]
        return await asyncio.wait_for(asyncio.gather(*works), 30)

    for _ in range(3):
        assert len(narrow.run(all_())) == 60


def test_a_connection_that_was_lost_while_idle_is_not_given_out(narrow: Service) -> None:
    """PostgreSQL may end connections; each is at most one failure, of a kind that says to try again."""
    database = database_of(narrow)

    async def end_others() -> None:
        await asyncio.gather(_one(database), _one(database))
        ended = sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        await database.reading().rows(ended)

    async def eventually() -> None:
        found = await asyncio.gather(*[_one(database) for _ in range(8)], return_exceptions=True)
        failures = [each for each in found if each != 1]
        assert len(failures) <= 2
        assert all(isinstance(each, Unavailable) for each in failures)
        assert await asyncio.gather(*[_one(database) for _ in range(8)]) == [1] * 8

    narrow.run(end_others())
    narrow.run(eventually())


def test_a_read_that_is_given_up_leaves_a_connection_fit_for_the_next(narrow: Service) -> None:
    """Cancelled reads end at the server too, and their connections serve again."""
    database = database_of(narrow)

    async def give_up() -> None:
        tasks = [asyncio.create_task(database.reading().rows(SLOW)) for _ in range(2)]
        while len(await _running(database)) < 2:  # noqa: ASYNC110 (another process is waited for)
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert await asyncio.wait_for(_one(database), 20) == 1

    narrow.run(give_up())


async def _running(database: Database) -> list[Any]:
    """What runs, asked over a connection of its own: the others are busy."""
    connection = await asyncpg.connect(database._url)  # type: ignore[attr-defined]
    try:
        return list(
            await connection.fetch(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
                " AND state = 'active' AND query LIKE '%pg_sleep(30)' AND pid <> pg_backend_pid()"
            )
        )
    finally:
        await connection.close()


# --- the pool alone, on connections that do as a test says ---


class FakeConnection:
    """A connection that can be lost, and that can refuse to end."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.lost = False
        self.is_silent = False
        self.close_failure: BaseException | None = None

    def is_closed(self) -> bool:
        return self.lost

    async def close(self, *, timeout: float) -> None:  # noqa: ASYNC109 (as asyncpg has it)
        self.lost = True
        if self.is_silent:
            async with asyncio.timeout(timeout):
                await asyncio.Future()
        if self.close_failure is not None:
            raise self.close_failure


class Server:
    """Opens connections, unless it is `down`."""

    def __init__(self) -> None:
        self.opened: list[FakeConnection] = []
        self.down = False

    @property
    def open_count(self) -> int:
        return sum(not each.lost for each in self.opened)

    async def connect(self) -> Any:
        await asyncio.sleep(0)
        if self.down:
            raise ConnectionRefusedError
        self.opened.append(FakeConnection(len(self.opened)))
        return self.opened[-1]


def with_pool(size: int, work: Callable[[ConnectionPool, Server], Awaitable[T]], seconds: float = 5.0) -> T:
    """What `work` returns; fails the test if anything was left that nobody looked at."""
    unheard: list[Any] = []

    async def run() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
        server = Server()
        return await work(ConnectionPool(server.connect, size, seconds), server)

    result = asyncio.run(run())
    assert unheard == []
    return result


async def turns(count: int = 5) -> None:
    """Lets the others go on."""
    for _ in range(count):
        await asyncio.sleep(0)


def test_callers_are_served_in_the_order_of_waiting() -> None:
    """Who waits longest is next, and a newcomer never comes before."""

    async def work(pool: ConnectionPool, _: Server) -> list[int]:
        served: list[int] = []

        async def use(number: int) -> None:
            connection = await pool.acquire()
            served.append(number)
            await turns(1)
            pool.release(connection, reusable=True)

        uses = []
        for number in range(20):
            uses.append(asyncio.create_task(use(number)))
            await turns(1)
        await asyncio.gather(*uses)
        return served

    assert with_pool(2, work) == list(range(20))


def test_no_more_connections_are_open_than_allowed() -> None:
    """However many ask, and whatever becomes of their connections."""

    async def work(pool: ConnectionPool, server: Server) -> int:
        most = 0

        async def use(number: int) -> None:
            nonlocal most
            connection = await pool.acquire()
            most = max(most, server.open_count)
            await turns(number % 3)
            pool.release(connection, reusable=number % 2 == 0)

        await asyncio.gather(*[use(number) for number in range(50)])
        return most

    assert with_pool(3, work) == 3


def test_a_connection_is_used_again() -> None:
    """One caller after the other needs one connection."""

    async def work(pool: ConnectionPool, server: Server) -> int:
        for _ in range(5):
            pool.release(await pool.acquire(), reusable=True)
        return len(server.opened)

    assert with_pool(3, work) == 1


def test_a_wait_has_an_end() -> None:
    """Who waits too long gets a TimeoutError, and takes nothing from those behind."""

    async def work(pool: ConnectionPool, _: Server) -> None:
        connection = await pool.acquire()
        with pytest.raises(TimeoutError):
            await pool.acquire()
        pool.release(connection, reusable=True)
        assert await pool.acquire() is connection

    with_pool(1, work, seconds=0.01)


@pytest.mark.parametrize("reusable", [True, False])
@pytest.mark.parametrize("later", range(6))
def test_who_gives_up_leaves_its_turn_to_the_next(later: int, *, reusable: bool) -> None:
    """A caller may be cancelled at any moment: what it was given, or was to open, serves the next."""

    async def work(pool: ConnectionPool, server: Server) -> None:
        connection = await pool.acquire()
        first, second = (asyncio.create_task(pool.acquire()) for _ in range(2))
        await turns()
        pool.release(connection, reusable=reusable)
        await turns(later)
        first.cancel()
        await asyncio.wait([first])
        if not first.cancelled():
            pool.release(first.result(), reusable=reusable)
        assert not (await second).is_closed()
        assert server.open_count == 1

    with_pool(1, work)


def test_a_server_that_is_down_takes_no_place() -> None:
    """Each failure is told to its caller; once the server is back, all connections can be had."""

    async def work(pool: ConnectionPool, server: Server) -> None:
        server.down = True
        found = await asyncio.gather(*[pool.acquire() for _ in range(10)], return_exceptions=True)
        assert [type(each) for each in found] == [ConnectionRefusedError] * 10
        server.down = False
        assert len({id(each) for each in [await pool.acquire(), await pool.acquire()]}) == 2

    with_pool(2, work)


@pytest.mark.parametrize("failure", [TimeoutError(), OSError(), asyncpg.InterfaceError("x")], ids=repr)
def test_a_connection_that_cannot_be_closed_is_replaced(failure: Exception) -> None:
    """Whatever closing meets, its place is free afterwards, and nothing is left that nobody looks at."""

    async def work(pool: ConnectionPool, server: Server) -> None:
        connection = await pool.acquire()
        server.opened[0].close_failure = failure
        pool.release(connection, reusable=False)
        assert await pool.acquire() is not connection

    with_pool(1, work)


def test_a_connection_that_does_not_end_is_replaced_in_time() -> None:
    """Who waits for the place of a connection whose server is silent gets it before giving up."""

    async def work(pool: ConnectionPool, server: Server) -> None:
        connection = await pool.acquire()
        server.opened[0].is_silent = True
        pool.release(connection, reusable=False)
        assert await pool.acquire() is not connection

    with_pool(1, work, seconds=0.1)


def test_a_pool_closes_what_is_idle_and_what_is_released() -> None:
    """Closing waits for those who have a connection, and leaves none open."""

    async def work(pool: ConnectionPool, server: Server) -> None:
        used, idle = await pool.acquire(), await pool.acquire()
        server.opened[1].close_failure = TimeoutError()
        pool.release(idle, reusable=True)
        closing = asyncio.create_task(pool.close())
        await turns()
        assert (server.open_count, closing.done()) == (1, False)
        pool.release(used, reusable=True)
        await closing
        assert server.open_count == 0

    with_pool(3, work)


def test_a_pool_ends_though_a_connection_is_never_released() -> None:
    """Closing does not wait for ever."""

    async def work(pool: ConnectionPool, _: Server) -> None:
        await pool.acquire()
        await pool.close()

    with_pool(2, work, seconds=0.01)
