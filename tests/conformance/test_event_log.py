"""The log is read in one order that never changes, and nothing that commits late is skipped."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from tests import shop
from tests.conformance.store import Store, add_event, sql, user_row
from tests.service import Service
from tradepost.domain.user import User
from tradepost.events import tail
from tradepost.events.tail import Position
from tradepost.storage.database import Writing
from tradepost.storage.record_statements import statements_of


class _Reader:
    """Whoever follows the log: keeps the position of the last event it saw, and asks for what is behind it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._position = Position()
        self.seen: list[str] = []

    async def read(self, limit: int = 1000) -> list[str]:
        """The ids of the events that are new since the last time."""
        found, _ = await tail.after(self._store.database.reading(), self._position, limit)
        if found:
            self._position = found[-1][0]
        new = [str(row[0]) for _, row in found]
        self.seen += new
        return new


class _Held:
    """A transaction that appends an event and stays open until it is let go."""

    def __init__(self, store: Store, *, first: str | None = None, fails: bool = False) -> None:
        self._store = store
        self._first = first
        self._fails = fails
        self._written, self._go = asyncio.Event(), asyncio.Event()
        self.event = ""

    async def begin(self) -> "_Held":
        """Runs until the event is written, or with `first` until its transaction has a number, but no event yet."""
        self._task = asyncio.ensure_future(self._store.database.write(self._work))
        await self._written.wait()
        return self

    async def end(self) -> None:
        self._go.set()
        await asyncio.gather(self._task, return_exceptions=self._fails)

    async def _work(self, tx: Writing) -> None:
        if self._first is None:
            self.event = await add_event(tx, "late")
        else:
            await tx.run(sql("UPDATE users SET name = 'held' WHERE id = :id"), id=self._first)
        self._written.set()
        await self._go.wait()
        if self._first is not None:
            self.event = await add_event(tx, "late")
        if self._fails:
            raise ZeroDivisionError


async def _appended(store: Store) -> str:
    async def work(tx: Writing) -> str:
        return await add_event(tx, "early")

    return await store.database.write(work)


@pytest.fixture
def log(new_service: Callable[..., Service]) -> Store:
    """A PostgreSQL of its own: the race is there where transactions run side by side."""
    return Store(new_service("postgresql"))


async def _by_number(store: Store) -> list[str]:
    """What a reader would see that goes by sequence numbers alone."""
    return [row[0] for row in await store.database.reading().rows(sql("SELECT id FROM events ORDER BY seq"))]


def test_a_late_committer_is_not_skipped(log: Store) -> None:
    """A takes number 1 and stays open, B takes 2 and commits: the reader sees nothing yet, then A and B."""

    async def race() -> None:
        reader = _Reader(log)
        before = await _appended(log)
        assert await reader.read() == [before]
        late = await _Held(log).begin()
        early = await _appended(log)
        # The race is on: by number alone the later one is there and the earlier one is not.
        assert await _by_number(log) == [before, early]
        assert await reader.read() == []
        await late.end()
        assert await _by_number(log) == [before, late.event, early]
        assert await reader.read() == [late.event, early]
        assert await reader.read() == []

    log.run(race())


def test_a_late_writer_is_not_skipped_either(log: Store) -> None:
    """A transaction that began earlier but appends after a later one has committed: its event is read before that one."""

    async def race() -> None:
        reader = _Reader(log)
        user = user_row()

        async def add(tx: Writing) -> None:
            await tx.run(statements_of(User).insert, **user)

        await log.database.write(add)
        late = await _Held(log, first=user["id"]).begin()
        early = await _appended(log)
        assert await reader.read() == []
        await late.end()
        assert await _by_number(log) == [early, late.event]
        assert await reader.read() == [late.event, early]

    log.run(race())


def test_a_transaction_that_fails_holds_up_nobody(log: Store) -> None:
    """Once the open transaction is rolled back, what was written beside it is read, and the hole is no event."""

    async def race() -> None:
        reader = _Reader(log)
        late = await _Held(log, fails=True).begin()
        early = await _appended(log)
        assert await reader.read() == []
        await late.end()
        assert await reader.read() == [early]
        assert late.event not in await _by_number(log)

    log.run(race())


def test_the_list_of_events_skips_nobody(log: Store) -> None:
    """The same through GET /v1/events: a cursor walk beside a late committer shows every event once."""
    service = log.service
    shop.a_user(service)
    shop.events_of(service, "nobody")
    known = shop.walked(service, "/v1/events?limit=1")
    cursor = shop.get(service, "/v1/events?limit=1")["next"]
    held = _Held(log)
    log.run(held.begin())
    early = shop.a_user(service)
    assert shop.walked(service, "/v1/events?limit=1") == known
    assert service.get(f"/v1/events?subject=users/{early['id']}").json["items"] == []
    log.run(held.end())
    shop.events_of(service, "nobody")
    *rest, mine, _ = shop.get(service, f"/v1/events?cursor={cursor}")["items"]
    assert [event["id"] for event in rest] == [*(event["id"] for event in known[1:]), held.event]
    assert mine["subject"] == f"users/{early['id']}"


async def _writer(store: Store, n: int) -> list[str]:
    """Writes a dozen events, some slowly, some in vain; those that are there."""
    written = []
    for turn in range(12):

        async def work(tx: Writing, turn: int = turn) -> str:
            event = await add_event(tx, f"writer-{n}")
            if store.service.engine == "postgresql":
                for _ in range((n * 7 + turn * 3) % 5):
                    await tx.rows(sql("SELECT 1"))
            if (n + turn) % 6 == 0:
                raise ZeroDivisionError
            return event

        with suppress(ZeroDivisionError):
            written.append(await store.database.write(work))
    return written


def test_many_writers_and_a_reader_beside_them(store: Store) -> None:
    """Eight writers that commit when they please, one reader that follows: it meets each event exactly once."""

    async def all_() -> None:
        reader = _Reader(store)
        await _drained(reader.read)
        before = len(reader.seen)
        writers = [asyncio.ensure_future(_writer(store, n)) for n in range(8)]
        while not all(each.done() for each in writers):
            await reader.read(limit=3)
            await asyncio.sleep(0)
        written = [event for each in writers for event in each.result()]
        for _ in range(10_000):
            if len(reader.seen) - before >= len(written):
                break
            await reader.read()
        await _drained(reader.read)
        assert sorted(reader.seen[before:]) == sorted(written)
        again = _Reader(store)
        await _drained(again.read)
        assert again.seen == reader.seen

    store.run(all_())


async def _drained(read: Callable[[], Awaitable[Any]]) -> None:
    for _ in range(shop.MANY):
        if not await read():
            return
    raise AssertionError("the log has no end")


def test_the_tail_is_read_in_pieces(store: Store) -> None:
    """Reading one by one, or all at once, is the same sequence."""

    async def work(tx: Writing) -> list[str]:
        return [await add_event(tx, "one of five") for _ in range(5)]

    ids = store.write(work)

    async def read() -> tuple[list[str], list[str]]:
        one_by_one, at_once = _Reader(store), _Reader(store)
        for _ in range(10_000):
            await _drained(lambda: one_by_one.read(limit=1))
            if ids[-1] in one_by_one.seen:
                break
        await at_once.read()
        return one_by_one.seen, at_once.seen

    one_by_one, at_once = store.run(read())
    assert one_by_one == at_once
    assert one_by_one[-5:] == ids
