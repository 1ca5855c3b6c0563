"""Connections kept at hand on PostgreSQL: nobody waits for one that lies there, and none is lent that is lost."""

import asyncio
from collections.abc import Callable
from typing import Any

import asyncpg
import pytest

from tests.conformance.store import sql
from tests.service import Service
from tradepost.problems import Unavailable
from tradepost.storage.database import Database, Writing

NOW = sql("SELECT 1")
SLOW = sql("SELECT pg_advisory_lock(1)")  # while somebody else holds that lock


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


def test_a_connection_that_was_lost_at_rest_is_not_lent(narrow: Service) -> None:
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
        holder = await asyncpg.connect(database._url)  # type: ignore[attr-defined]
        await holder.execute("SELECT pg_advisory_lock(1)")
        tasks = [asyncio.create_task(database.reading().rows(SLOW)) for _ in range(2)]
        while await holder.fetchval(WAITING) < 2:
            pass
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert await asyncio.wait_for(_one(database), 20) == 1
        await holder.close()

    narrow.run(give_up())


WAITING = """SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database
    WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted"""
