"""Hints that something was committed reach whoever watches, in any process, and cost the others nothing."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests import shop
from tests.conformance.store import Store, add_event, sql
from tests.conformance.test_feed import another
from tests.service import Service
from tests.waiting import Changes, until
from tradepost.assembly import database
from tradepost.settings import load
from tradepost.storage.postgres import PostgresDatabase


class Hints:
    """How often one who watches was called."""

    def __init__(self) -> None:
        self.count = 0
        self._called = Changes()

    def __call__(self) -> None:
        self.count += 1
        self._called.tell()

    async def more(self, than: int) -> None:
        await self._called.until(lambda: self.count > than)


@contextlib.asynccontextmanager
async def watching(store: Any) -> AsyncIterator[Hints]:
    hints = Hints()
    store.watch(hints)
    try:
        yield hints
    finally:
        await store.unwatch(hints)


async def _commit(store: Any) -> None:
    await store.write(lambda tx: add_event(tx, "somebody"))
    store.wake()


@pytest.fixture
def shared(new_service: Callable[..., Service]) -> Store:
    """A PostgreSQL that nobody else uses."""
    return Store(new_service("postgresql"))


def test_who_watches_in_the_same_process_is_called_at_once(store: Store) -> None:
    """When wake() returns, everybody who watches here was called, and nobody who stopped."""

    async def run() -> None:
        async with watching(store.database) as one, watching(store.database) as two:
            async with watching(store.database) as gone:
                pass
            before, ended = (one.count, two.count), gone.count
            store.database.wake()
            assert (one.count, two.count) == (before[0] + 1, before[1] + 1)
            assert gone.count == ended

    store.run(run())


def test_who_watches_elsewhere_is_called_soon(store: Store) -> None:
    """A commit is noticed over another connection to the same store, every time."""

    async def run() -> None:
        async with another(store) as other, watching(other) as hints:
            for _ in range(5):
                # On PostgreSQL it takes a moment until it listens; the call for that is one for nothing.
                before = hints.count
                await _commit(store.database)
                await hints.more(before)

    store.run(run())


def test_whoever_wakes_waits_for_nothing(store: Store) -> None:
    """Thousands of calls start one task at most, and others get a hint in ten milliseconds at most."""

    async def run() -> None:
        async with another(store) as other, watching(other) as hints:
            await _commit(store.database)
            await hints.more(0)
            before, began, tasks = hints.count, time.monotonic(), len(asyncio.all_tasks())
            while time.monotonic() < began + 0.3:
                for _ in range(20):
                    store.database.wake()
                await asyncio.sleep(0)
                assert len(asyncio.all_tasks()) <= tasks + 1
            await _commit(store.database)
            await hints.more(before)
            assert hints.count - before <= (time.monotonic() - began) / 0.01 + 5

    store.run(run())


def test_stopping_while_watched_leaves_nothing(store: Store) -> None:
    """A database stopped in the midst of hints and of a watch is closed whole, with no task left."""

    async def run() -> None:
        before = asyncio.all_tasks()
        for _ in range(3):
            other = database(load({}, database_url=store.service.database_url))
            await other.start()
            other.watch(Hints())
            await _commit(other)
            await other.stop()
        assert asyncio.all_tasks() <= before

    store.run(run())


def test_what_is_watched_after_nobody_watched(store: Store) -> None:
    """A watch that was ended begins anew, again and again."""

    async def run() -> None:
        async with another(store) as other:
            for _ in range(3):
                async with watching(other) as hints:
                    before = hints.count
                    await _commit(store.database)
                    await hints.more(before)

    store.run(run())


def test_a_listening_connection_that_is_lost_is_made_anew(shared: Store) -> None:
    """After its connection is cut whoever watches is called, for hints may have been missed, and hears the next."""
    mine = "application_name = 'tradepost-notices' AND datname = current_database()"

    async def listening() -> int:
        row = await shared.database.reading().row(sql(f"SELECT max(pid) FROM pg_stat_activity WHERE {mine}"))
        assert row is not None
        return row[0] or 0

    async def run() -> None:
        async with another(shared) as other, watching(other) as hints:
            await hints.more(0)
            first, before = await listening(), hints.count
            await shared.database.reading().row(
                sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {mine}")
            )
            await hints.more(before)
            assert await listening() not in (0, first)
            heard = hints.count
            await _commit(shared.database)
            await hints.more(heard)

    shared.run(run())


def test_hints_that_cannot_be_sent_are_lost_quietly(
    shared: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An engine that does not know NOTIFY loses hints and nothing else; it is said once, and not tried each time."""

    async def run() -> None:
        store = shared.database
        assert isinstance(store, PostgresDatabase)
        monkeypatch.setattr("tradepost.storage.postgres_wakeups._CHANNEL", "no channel")
        for _ in range(20):
            await _commit(store)
        await until(lambda: store._wakeups._notifying is None)

    with caplog.at_level(logging.WARNING, "tradepost.storage"):
        shared.run(run())
    assert ["NOTIFY" in record.getMessage() for record in caplog.records] == [True]


def test_what_announces_something_wakes(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that appended events wakes, once; a replay, a refusal and a call that changes nothing do not."""
    performer = service.app.rest.performer
    wakes: list[int] = []
    monkeypatch.setattr(performer.database, "wake", lambda: wakes.append(1))
    body = {"name": "Ada", "email": f"{shop.unique()}@shop.example"}
    key = shop.unique()
    user = service.made("/v1/users", body, idempotency_key=key)
    assert len(wakes) == 1
    assert service.made("/v1/users", body, idempotency_key=key) == user
    assert service.post("/v1/users", body).status == 409
    assert service.post("/v1/users", {"name": 1}).status == 422
    assert service.call("PATCH", f"/v1/users/{user['id']}", {"name": "Ada"}).status == 200
    assert len(wakes) == 1
    assert service.call("PATCH", f"/v1/users/{user['id']}", {"name": "Eve"}).status == 200
    assert len(wakes) == 2
