"""The feed tells each listener each event about its subject once, in order, wherever it was committed."""

import asyncio
import contextlib
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.conformance.store import ADD_USER, IDS, Store, add_event, sql, user_row
from tests.service import Service
from tests.waiting import Changes, until
from tradepost.assembly import database
from tradepost.domain.user import User
from tradepost.events import feed as feed_module
from tradepost.events.feed import Feed, FeedEvent
from tradepost.problems import Unavailable
from tradepost.settings import load
from tradepost.storage.database import Database, OnWakeup, Reading, Writing
from tradepost.storage.record_statements import statements_of
from tradepost.storage.statements import events

ANOTHER_PROCESS = """
import asyncio, sys
from tests.conformance.store import add_event
from tradepost.assembly import database
from tradepost.settings import load

async def main():
    store = database(load({}, database_url=sys.argv[1]))
    await store.start()
    print(await store.write(lambda tx: add_event(tx, sys.argv[2])))
    store.wake()
    await store.stop()

asyncio.run(main())
"""


class Listener:
    """What one listener was told."""

    def __init__(self) -> None:
        self.told: list[FeedEvent] = []
        self._more = Changes()

    def __call__(self, told: FeedEvent) -> None:
        self.told.append(told)
        self._more.tell()

    @property
    def ids(self) -> list[str]:
        return [told.id for told in self.told]

    async def has(self, count: int) -> list[str]:
        """The ids of what was told, once there are so many."""
        await self._more.until(lambda: len(self.told) >= count)
        return self.ids


class Watched:
    """A database that notes how it is used, and fails or keeps silent when told to."""

    def __init__(self, real: Database) -> None:
        self.real = real
        self.readings = 0
        self.watches: list[str] = []
        self.failing = False
        self.silent = False
        self.may_end = asyncio.Event()
        self.may_end.set()
        self._used = Changes()

    def reading(self) -> Reading:
        self.readings += 1
        self._used.tell()
        if self.failing:
            message = "out of reach"
            raise Unavailable(message)
        return self.real.reading()

    def watch(self, on_wakeup: OnWakeup) -> None:
        self.watches.append("begun")
        if not self.silent:
            self.real.watch(on_wakeup)

    async def unwatch(self, on_wakeup: OnWakeup) -> None:
        self.watches.append("ending")
        await self.may_end.wait()
        await self.real.unwatch(on_wakeup)
        self.watches.append("ended")

    async def looks(self, more: int = 3) -> None:
        """Waits until the log was looked at so many times more."""
        goal = self.readings + more
        await self._used.until(lambda: self.readings >= goal)


@contextlib.asynccontextmanager
async def following(store: Any) -> AsyncIterator[Feed]:
    """A feed of its own, that leaves nothing behind."""
    feed = Feed(store)
    try:
        yield feed
    finally:
        await feed.stop()
    assert feed._task is None or feed._task.done()


@contextlib.asynccontextmanager
async def another(store: Store) -> AsyncIterator[Database]:
    """The same database, as another process has it."""
    other = database(load({}, database_url=store.service.database_url))
    await other.start()
    try:
        yield other
    finally:
        await other.stop()


async def committed(store: Database, subject: str, count: int = 1, *, hint: bool = True) -> list[str]:
    """Events about a user, in one transaction."""

    async def work(tx: Writing) -> list[str]:
        return [await add_event(tx, subject) for _ in range(count)]

    found = await store.write(work)
    if hint:
        store.wake()
    return found


class Held:
    """A transaction on PostgreSQL that has begun and goes on when it is let."""

    def __init__(self, store: Database, work: Callable[[Writing], Awaitable[Any]]) -> None:
        self._store, self._work = store, work
        self._begun, self._go = asyncio.Event(), asyncio.Event()

    async def begin(self) -> "Held":
        self._task = asyncio.ensure_future(self._store.write(self._run))
        await self._begun.wait()
        return self

    async def end(self) -> Any:
        self._go.set()
        return await self._task

    async def _run(self, tx: Writing) -> Any:
        await tx.run(ADD_USER, **user_row())  # the transaction has its number now
        result = await self._work(tx)
        self._begun.set()
        await self._go.wait()
        return result


@pytest.fixture(scope="module")
def racing(new_service: Callable[..., Service]) -> Store:
    """A PostgreSQL, where transactions run side by side."""
    return Store(new_service("postgresql"))


@pytest.fixture
def subject() -> str:
    return IDS.new(1)


EVENT = sql("SELECT type, subject, time, id FROM events WHERE id = :id")


def test_what_is_committed_from_now_on_is_told(store: Store, subject: str) -> None:
    """A listener is told the events about its subject from its call on, in order, once each, and nothing else."""

    async def run() -> None:
        async with following(store.database) as feed:
            await committed(store.database, subject)
            listener, other = Listener(), Listener()
            await feed.follow(f"users/{subject}", listener)
            await feed.follow("users/somebody else", other)
            first = await committed(store.database, subject, 3)
            (second,) = await committed(store.database, subject)
            (last,) = await committed(store.database, "somebody else")
            assert await other.has(1) == [last]
            assert listener.ids == [*first, second]
            row = await store.database.reading().row(EVENT, id=second)
            assert listener.told[-1] == row

    store.run(run())


def test_a_thousand_listeners_read_the_log_once(store: Store, subject: str) -> None:
    """Each of a thousand on one subject is told once; the log is not read for each of them."""

    async def run() -> None:
        seen = Watched(store.database)
        async with following(seen) as feed:
            listeners = [Listener() for _ in range(1000)]
            await asyncio.gather(*[feed.follow(f"users/{subject}", each) for each in listeners])
            joined = seen.readings
            ids = await committed(store.database, subject, 2)
            for each in listeners:
                await each.has(2)
            assert {tuple(each.ids) for each in listeners} == {tuple(ids)}
            assert joined < 100
            assert seen.readings - joined < 100

    store.run(run())


def test_each_process_is_told_what_any_process_commits(store: Store, subject: str) -> None:
    """Feeds on two databases that share one store are both told what either commits, once each and in one order."""

    async def run() -> None:
        async with (
            another(store) as other,
            following(store.database) as here,
            following(other) as there,
        ):
            one, two = Listener(), Listener()
            await here.follow(f"users/{subject}", one)
            await there.follow(f"users/{subject}", two)
            ids = []
            for n in range(20):
                ids += await committed((store.database, other)[n % 2], subject)
            assert await one.has(20) == ids
            assert await two.has(20) == ids

    store.run(run())


def test_a_real_process_is_heard(store: Store, subject: str) -> None:
    """What another process of the operating system commits is told here."""

    async def run() -> None:
        async with following(store.database) as feed:
            listener = Listener()
            await feed.follow(f"users/{subject}", listener)
            command = [sys.executable, "-c", ANOTHER_PROCESS, store.service.database_url, subject]
            done = await asyncio.to_thread(
                subprocess.run, command, capture_output=True, check=True, text=True
            )
            assert await listener.has(1) == [done.stdout.strip()]

    store.run(run())


def test_a_late_committer_is_told(racing: Store, subject: str) -> None:
    """An event with the earlier number that is committed later is told first; the other one waits for it."""

    async def run() -> None:
        seen = Watched(racing.database)
        async with following(seen) as feed:
            listener = Listener()
            await feed.follow(f"users/{subject}", listener)
            held = await Held(racing.database, lambda tx: add_event(tx, subject)).begin()
            early = await committed(racing.database, subject)
            await seen.looks()
            assert listener.told == []
            late = await held.end()
            assert await listener.has(2) == [late, *early]

    racing.run(run())


def test_what_waits_for_another_transaction_is_told_when_that_ends(
    racing: Store, subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction that announces nothing gives no hint as it ends: what it held up is told all the same."""
    monkeypatch.setattr(feed_module, "_LOOK_SECONDS", 3600.0)

    async def nothing(tx: Writing) -> None:
        await tx.row(statements_of(User).get, id="nobody")

    async def run() -> None:
        seen = Watched(racing.database)
        seen.silent = True
        async with following(seen) as feed:
            listener = Listener()
            await feed.follow(f"users/{subject}", listener)
            held = await Held(racing.database, nothing).begin()
            ids = await committed(racing.database, subject)
            feed._wake_up.set()
            await seen.looks()
            assert listener.told == []
            await held.end()
            assert await listener.has(1) == ids

    racing.run(run())


def test_what_was_committed_before_is_not_told_however_late_it_settles(racing: Store, subject: str) -> None:
    """Of events that wait for an older transaction those from before the call are not told; the older one's is."""

    async def run() -> None:
        async with following(racing.database) as feed:
            await feed.follow("users/somebody else", Listener())
            held = await Held(racing.database, lambda tx: add_event(tx, subject)).begin()
            await committed(racing.database, subject)
            listener = Listener()
            await feed.follow(f"users/{subject}", listener)
            after = await committed(racing.database, subject)
            late = await held.end()
            assert await listener.has(2) == [late, *after]

    racing.run(run())


def test_a_lost_hint_costs_time_and_nothing_else(store: Store, subject: str) -> None:
    """Without a single hint everything is told by looking now and then."""

    async def run() -> None:
        silent = Watched(store.database)
        silent.silent = True
        async with following(silent) as feed:
            listener = Listener()
            await feed.follow(f"users/{subject}", listener)
            ids = await committed(store.database, subject, hint=False)
            assert await listener.has(1) == ids

    store.run(run())


@pytest.mark.parametrize("failure", [ValueError("no"), asyncio.QueueFull(), asyncio.CancelledError()])
def test_a_listener_that_raises_harms_nobody(
    store: Store, subject: str, failure: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """Others are told all the same, and it is itself told the next event; the log says that it failed."""
    calls: list[FeedEvent] = []

    def raises(told: FeedEvent) -> None:
        calls.append(told)
        raise failure

    async def run() -> None:
        async with following(store.database) as feed:
            listeners = Listener(), Listener()
            await feed.follow(f"users/{subject}", listeners[0])
            await feed.follow(f"users/{subject}", raises)
            await feed.follow(f"users/{subject}", listeners[1])
            ids = await committed(store.database, subject, 2)
            assert [await each.has(2) for each in listeners] == [ids, ids]
            assert [told.id for told in calls] == ids

    with caplog.at_level(logging.ERROR, "tradepost.events"):
        store.run(run())
    assert [subject in record.getMessage() for record in caplog.records] == [True, True]


def test_who_left_is_told_nothing(store: Store, subject: str) -> None:
    """Not even the rest of what was read, nor when it was made to leave by another listener to the same event."""

    async def run() -> None:
        async with following(store.database) as feed:
            listener, other = Listener(), Listener()

            def leaves(told: FeedEvent) -> None:
                listener(told)
                feed.leave(f"users/{subject}", leaves)
                feed.leave(f"users/{subject}", other)

            await feed.follow(f"users/{subject}", leaves)
            await feed.follow(f"users/{subject}", other)
            rest = Listener()
            await feed.follow(f"users/{subject}", rest)
            ids = await committed(store.database, subject, 3)
            assert await rest.has(3) == ids
            assert listener.ids == ids[:1]
            assert other.ids == []
            feed.leave(f"users/{subject}", other)

    store.run(run())


def test_following_twice_is_following_once(store: Store, subject: str) -> None:
    """The same listener on the same subject is told each event once, from its first call on."""

    async def run() -> None:
        async with following(store.database) as feed:
            listener, fence = Listener(), Listener()
            await feed.follow(f"users/{subject}", listener)
            first = await committed(store.database, subject, hint=False)
            await feed.follow(f"users/{subject}", listener)
            second = await committed(store.database, subject)
            await feed.follow("users/fence", fence)
            await committed(store.database, "fence")
            await fence.has(1)
            assert listener.ids == [*first, *second]

    store.run(run())


def test_coming_and_going_while_events_fly(store: Store, subject: str) -> None:
    """Whenever a listener comes and goes: all that was begun after its call returned is told, once and in order, and nothing that was done before."""
    done: list[str] = []  # in the order in which their commits were known
    begun: dict[str, int] = {}  # how many were done when an event was begun

    async def write(count: int) -> None:
        for _ in range(count):
            before = len(done)
            (event,) = await committed(store.database, subject)
            begun[event] = before
            done.append(event)

    async def listen(feed: Feed, writing: "asyncio.Future[Any]") -> None:
        while not writing.done():
            listener = Listener()
            before = set(done)
            await feed.follow(f"users/{subject}", listener)
            returned = len(done)
            await until(lambda: len(listener.told) >= 3 or writing.done())  # noqa: B023 (awaited here)
            feed.leave(f"users/{subject}", listener)
            pieces.append((before, returned, listener))

    pieces: list[tuple[set[str], int, Listener]] = []

    async def run() -> None:
        async with following(store.database) as feed:
            writing = asyncio.gather(*[write(60) for _ in range(4)])
            await asyncio.gather(*[listen(feed, writing) for _ in range(5)], writing)
            told = [(before, returned, each.ids) for before, returned, each in pieces]
        rows = await store.database.reading().rows(
            sql("SELECT id FROM events WHERE subject = :subject ORDER BY xid, seq"),
            subject=f"users/{subject}",
        )
        log = [row[0] for row in rows]
        assert sorted(log) == sorted(done)
        place = {event: n for n, event in enumerate(log)}
        assert any(ids for _, _, ids in told)
        for before, returned, ids in told:
            assert not before & set(ids)
            assert all(place[one] < place[two] for one, two in pairwise(ids))
            passed = log[: place[ids[-1]]] if ids else []
            assert {event for event in passed if begun[event] > returned} <= set(ids)

    store.run(run())


def test_a_long_piece_of_the_log_is_told_whole(store: Store, subject: str) -> None:
    """More events in one transaction than are read at once are all told, in order."""

    async def run() -> None:
        async with following(store.database) as feed:
            listener = Listener()
            await feed.follow(f"users/{subject}", listener)
            ids = await committed(store.database, subject, 1200)
            assert await listener.has(1200) == ids

    store.run(run())


def test_nothing_runs_while_nobody_listens(store: Store, subject: str) -> None:
    """With the last listener the watch and the task end; with the next one they begin anew."""

    async def run() -> None:
        seen = Watched(store.database)
        async with following(seen) as feed:
            assert seen.watches == []
            for n in range(1, 4):
                one, two = Listener(), Listener()
                await feed.follow(f"users/{subject}", one)
                await feed.follow(f"users/{subject}", two)
                feed.leave(f"users/{subject}", one)
                ids = await committed(store.database, subject)
                assert await two.has(1) == ids
                feed.leave(f"users/{subject}", two)
                await until(lambda: seen.watches[-1] == "ended" and feed._task is None)
                assert seen.watches == ["begun", "ending", "ended"] * n

    store.run(run())


def test_who_comes_as_the_last_one_leaves(store: Store, subject: str) -> None:
    """Following works while the watch is being ended, too."""

    async def run() -> None:
        seen = Watched(store.database)
        async with following(seen) as feed:
            listener = Listener()
            await feed.follow("users/somebody else", listener)
            seen.may_end.clear()
            feed.leave("users/somebody else", listener)
            await until(lambda: seen.watches[-1] == "ending")
            coming = asyncio.ensure_future(feed.follow(f"users/{subject}", listener))
            await asyncio.sleep(0)
            seen.may_end.set()
            await asyncio.wait_for(coming, 20)
            ids = await committed(store.database, subject)
            assert await listener.has(1) == ids

    store.run(run())


def test_a_database_that_fails_for_a_while(
    store: Store, subject: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once; what was committed meanwhile is told when it is back, and who came meanwhile may listen."""

    async def run() -> None:
        seen = Watched(store.database)
        async with following(seen) as feed:
            listener, later, gone = Listener(), Listener(), Listener()
            await feed.follow(f"users/{subject}", listener)
            seen.failing = True
            ids = await committed(store.database, subject)
            waiting = asyncio.ensure_future(feed.follow(f"users/{subject}", later))
            giving_up = asyncio.ensure_future(feed.follow(f"users/{subject}", gone))
            await seen.looks()
            assert not waiting.done()
            giving_up.cancel()
            seen.failing = False
            await waiting
            assert giving_up.cancelled()
            ids += await committed(store.database, subject)
            assert await listener.has(2) == ids
            assert await later.has(1) == ids[1:]
            assert gone.told == []

    with caplog.at_level(logging.WARNING, "tradepost.events"):
        store.run(run())
    assert len(caplog.records) == 1


def test_a_stopped_feed_lets_nobody_wait(store: Store, subject: str) -> None:
    """Whoever waits to listen, or comes later, is told that it is over; listeners are told nothing more."""

    async def run() -> None:
        seen = Watched(store.database)
        feed = Feed(seen)  # type: ignore[arg-type]
        listener = Listener()
        await feed.follow(f"users/{subject}", listener)
        seen.failing = True
        waiting = asyncio.ensure_future(feed.follow(f"users/{subject}", Listener()))
        await seen.looks(1)
        await feed.stop()
        with pytest.raises(Unavailable):
            await waiting
        with pytest.raises(Unavailable):
            await feed.follow(f"users/{subject}", Listener())
        assert seen.watches == ["begun", "ending", "ended"]
        await committed(store.database, subject)
        assert listener.told == []
        await feed.stop()

    store.run(run())


def test_a_log_that_is_forgotten_goes_on(store: Store, subject: str) -> None:
    """However much of the log is purged, what is committed afterwards is told."""

    async def run() -> None:
        async with following(store.database) as feed:
            listener = Listener()
            await feed.follow(f"users/{subject}", listener)
            ids = await committed(store.database, subject, 50)
            await listener.has(50)

            async def purge(tx: Writing) -> int:
                return await tx.run(events.PURGE, after="", upto="g")

            assert await store.database.write(purge)
            ids += await committed(store.database, subject)
            assert await listener.has(51) == ids

    store.run(run())
