"""Leases: what a worker took with it when it was killed is made by another, the same attempt and once."""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import shop
from tests.given_clock import SECOND, GivenClock
from tests.service import Service
from tests.waiting import until
from tests.webhooks.courier import HANG, Courier, Receiver, an_endpoint, deliveries_of, events
from tests.webhooks.figures import figure
from tradepost.clock import instant
from tradepost.events.outbox import delivery
from tradepost.problems import Unavailable
from tradepost.storage.database import Row, Writing
from tradepost.storage.statements.webhook_deliveries import LEASE as LEASE_DELIVERIES
from tradepost.storage.statements.webhook_deliveries import LEASES_AT_ONCE, QUEUE
from tradepost.webhooks import upkeep, worker
from tradepost.webhooks.leases import Leases

LEASE = 20 * SECOND

NewReceiver = Callable[..., Receiver]


@pytest.fixture
def other(shop_service: Service) -> Iterator[Courier]:
    """Another worker on the same database."""
    made = Courier(shop_service)
    yield made
    made.stop()


@pytest.fixture
def stranded(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver
) -> Iterator[tuple[Any, Receiver]]:
    """An endpoint with a delivery that arrived, from a worker that died before it heard of that; the receiver."""
    receiver = new_receiver(HANG)
    endpoint = an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    courier.turn()
    receiver.wait_for(1)
    yield endpoint, receiver
    receiver.release()


def named(service: Service, worker: str) -> None:
    """Names all leases there are for another worker."""
    service.rows(f"UPDATE webhook_deliveries SET lease = '{worker}' WHERE lease IS NOT NULL RETURNING id")


def leases(service: Service) -> list[str]:
    return [row[0] for row in service.rows("SELECT lease FROM webhook_deliveries WHERE lease IS NOT NULL")]


@contextmanager
def a_process() -> Iterator[subprocess.Popen[bytes]]:
    """A process of this machine, alive in the block and killed behind it."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        yield child
        child.send_signal(signal.SIGKILL)
        child.wait(20)


def began(pid: int) -> str:
    """When a process began, in ticks since the boot."""
    return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[19]


def worker_named(pid: int, began: str) -> str:
    """A lease as a process of this machine names it."""
    realm = Leases().new().split("/")[0]
    return f"{realm}/{pid}/{began}/0123abcd/0"


# --- leases end by time ---


def test_what_was_never_concluded_is_made_by_another_after_the_lease(
    shop_service: Service,
    courier: Courier,
    other: Courier,
    stranded: tuple[Any, Receiver],
    clock: GivenClock,
) -> None:
    """The same attempt, number and all, is made by another worker once 20 s are over, and not a moment before."""
    endpoint, receiver = stranded
    courier.die()
    receiver.answer = 204
    clock.move(LEASE)
    other.release()
    other.deliver()
    assert len(receiver.got) == 1
    clock.move(1)
    other.release()
    other.deliver()
    assert [each.event["attempt"] for each in receiver.got] == [0, 0]
    assert len(set(receiver.ids())) == 1
    [shown] = deliveries_of(shop_service, endpoint)
    assert shown["status"] == "DELIVERED"
    assert [(each["number"], each["responseStatus"]) for each in shown["attempts"]] == [(0, 204)]
    assert leases(shop_service) == []


def test_a_retry_that_was_out_stays_the_retry_it_was(
    shop_service: Service, courier: Courier, other: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """A worker that dies costs no attempt: the third is the third again, and there are still five behind it."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    for seconds in (6, 32):
        courier.deliver()
        clock.move(seconds * SECOND)
    receiver.answer = HANG
    courier.turn()
    receiver.wait_for(1)
    courier.die()
    receiver.answer = 500
    clock.move(LEASE + 1)
    other.release()
    other.deliver()
    [shown] = deliveries_of(shop_service, endpoint)
    assert [each.event["attempt"] for each in receiver.got] == [0, 1, 2, 2]
    assert [each["number"] for each in shown["attempts"]] == [0, 1, 2]
    assert shown["status"] == "PENDING"
    receiver.release()


@pytest.mark.parametrize("late", [204, 500])
def test_a_late_conclusion_changes_nothing(
    shop_service: Service,
    courier: Courier,
    other: Courier,
    stranded: tuple[Any, Receiver],
    clock: GivenClock,
    late: int,
) -> None:
    """Who comes back after its lease was given to another writes nothing, whatever it heard."""
    endpoint, receiver = stranded
    receiver.release(late)
    courier.settle()
    clock.move(LEASE + 1)
    receiver.answer = HANG
    other.release()
    other.turn()
    receiver.wait_for(1)
    [held] = leases(shop_service)
    courier.turn()
    assert leases(shop_service) == [held]
    [shown] = deliveries_of(shop_service, endpoint)
    assert (shown["status"], shown["attempts"]) == ("PENDING", [])
    receiver.release()
    other.deliver()
    [shown] = deliveries_of(shop_service, endpoint)
    assert shown["status"] == "DELIVERED"
    assert [(each["number"], each["responseStatus"]) for each in shown["attempts"]] == [(0, 204)]


def test_a_late_failure_does_not_take_a_delivery_back(
    shop_service: Service, courier: Courier, other: Courier, stranded: tuple[Any, Receiver], clock: GivenClock
) -> None:
    """What another delivered stays delivered, though the first worker heard a refusal and says so later."""
    endpoint, receiver = stranded
    receiver.release(500)
    courier.settle()
    clock.move(LEASE + 1)
    receiver.answer = 204
    other.release()
    other.deliver()
    courier.turn()
    [shown] = deliveries_of(shop_service, endpoint)
    assert (shown["status"], shown["nextAttemptAt"]) == ("DELIVERED", None)
    assert [each["responseStatus"] for each in shown["attempts"]] == [204]
    clock.move(3600 * SECOND)
    other.deliver()
    assert len(receiver.got) == 2


def test_a_long_timeout_makes_a_long_lease(
    engine: str, new_service: Callable[..., Service], clock: GivenClock
) -> None:
    """With a timeout of 30 s an attempt of two requests takes longer than 20 s, and so does the lease."""
    service = new_service(engine, clock=clock, webhook_allow_private="1", webhook_timeout="30")
    courier, receiver = Courier(service), Receiver(service, HANG)
    an_endpoint(service, receiver.url)
    shop.a_user(service)
    courier.turn()
    receiver.wait_for(1)
    clock.move(2 * 30 * SECOND)
    courier.release()
    assert len(leases(service)) == 1
    clock.move(10 * SECOND + 1)
    courier.release()
    assert leases(service) == []
    courier.die()
    courier.stop()
    receiver.stop()


def test_however_many_are_out_each_lease_that_is_over_is_put_back(
    shop_service: Service, courier: Courier, clock: GivenClock
) -> None:
    """Behind more live leases than a look takes in, one that is over is found all the same."""
    late = instant(clock.now_ms() + LEASE)

    async def out(tx: Writing) -> None:
        numbers = range(LEASES_AT_ONCE + 1)
        held = [delivery(f"live-{n}", f"endpoint-{n:06}", late, event_type="none") for n in numbers]
        over = delivery("over", "endpoint-x", late, event_type="none")
        live = {"lease": "elsewhere/1/1/live/0", "leased_until": late}
        await tx.many(QUEUE, [each | live for each in held])
        await tx.many(QUEUE, [over | live | {"lease": "elsewhere/1/1/gone/0", "leased_until": "2026"}])

    shop_service.run(shop_service.app.rest.performer.database.write(out))
    courier.release()
    assert len(leases(shop_service)) == LEASES_AT_ONCE + 1
    assert set(leases(shop_service)) == {"elsewhere/1/1/live/0"}


@pytest.mark.parametrize("answer", [204, 500])
def test_what_is_concluded_while_another_claims_it_is_not_sent_again(
    shop_service: Service, courier: Courier, stranded: tuple[Any, Receiver], clock: GivenClock, answer: int
) -> None:
    """A worker that picked a delivery whose result is written down just then leaves it alone."""
    endpoint, receiver = stranded
    receiver.release(answer)
    courier.settle()
    named(shop_service, "elsewhere/1/1/0/0")
    shop_service.rows("UPDATE webhook_deliveries SET lease = NULL, leased_until = NULL RETURNING id")
    [[chosen]] = shop_service.rows("SELECT id FROM webhook_deliveries")
    courier.turn()
    instants = {"now": instant(clock.now_ms()), "until": instant(clock.now_ms() + LEASE)}

    async def claim(tx: Writing) -> list[Row]:
        return await tx.rows(LEASE_DELIVERIES, ids=[chosen], lease="elsewhere/1/1/1/0", **instants)

    assert shop_service.run(shop_service.app.rest.performer.database.write(claim)) == []
    [shown] = deliveries_of(shop_service, endpoint)
    assert [each["responseStatus"] for each in shown["attempts"]] == [answer]


def test_what_was_put_back_and_not_claimed_since_is_concluded(
    shop_service: Service, courier: Courier, other: Courier, stranded: tuple[Any, Receiver], clock: GivenClock
) -> None:
    """A worker that comes back late, as after an outage, writes what it heard if nobody has begun anew."""
    endpoint, receiver = stranded
    receiver.release(204)
    courier.settle()
    clock.move(LEASE + 1)
    other.release()
    assert leases(shop_service) == []
    courier.turn()
    [shown] = deliveries_of(shop_service, endpoint)
    assert (shown["status"], len(shown["attempts"])) == ("DELIVERED", 1)
    other.deliver()
    assert len(receiver.got) == 1


# --- what the database refuses ---


def test_what_cannot_be_written_down_is_kept_until_it_can(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often the database is away in between, each event comes once and is delivered in the end."""
    receiver = new_receiver()
    endpoint = an_endpoint(shop_service, receiver.url)
    events(shop_service, 12)
    database = shop_service.app.rest.performer.database
    write, asked = database.write, itertools.count()

    async def often_away(work: Any) -> Any:
        if next(asked) % 2 == 0:
            raise Unavailable("The database is away")
        return await write(work)

    monkeypatch.setattr(database, "write", often_away)
    monkeypatch.setattr(worker, "_PAUSE_SECONDS", 0.01)

    async def run() -> None:
        courier.deliveries.start()
        await until(lambda: len(receiver.got) == 12 and courier.deliveries.worker.idle)

    shop_service.run(run())
    monkeypatch.undo()
    courier.stop()
    assert len(set(receiver.ids())) == len(receiver.got) == 12
    assert {each["status"] for each in deliveries_of(shop_service, endpoint)} == {"DELIVERED"}
    assert leases(shop_service) == []


def test_upkeep_goes_on_after_a_failure(
    shop_service: Service, courier: Courier, stranded: tuple[Any, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was left behind is put back once the database is there again."""
    courier.die()
    database = shop_service.app.rest.performer.database
    reading, asked = database.reading, list[None]()

    def away_at_first() -> Any:
        asked.append(None)
        if len(asked) <= 3:
            raise Unavailable("The database is away")
        return reading()

    named(shop_service, worker_named(os.getpid(), "1"))
    monkeypatch.setattr(database, "reading", away_at_first)
    monkeypatch.setattr(upkeep, "_ROUND_SECONDS", 0.01)

    async def run() -> None:
        task = asyncio.create_task(courier.deliveries.upkeep.run())
        await until(lambda: len(asked) > 9)
        task.cancel()
        await asyncio.wait([task])

    shop_service.run(run())
    monkeypatch.undo()
    assert leases(shop_service) == []


# --- who is stopped leaves none ---


def test_what_was_being_claimed_when_it_was_stopped_is_finished(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is stopped while it claims delivers what it has claimed before it ends, and holds nothing then."""
    receiver = new_receiver()
    endpoint = an_endpoint(shop_service, receiver.url)
    events(shop_service, 3)
    database, deliveries = shop_service.app.rest.performer.database, courier.deliveries
    write = database.write
    stopping: list[asyncio.Task[None]] = []

    async def stopped_meanwhile(work: Any) -> Any:
        if not stopping:
            stopping.append(asyncio.create_task(deliveries.stop()))
            await until(lambda: deliveries.worker._stopping)
        return await write(work)

    async def run() -> None:
        deliveries.start()
        await until(lambda: bool(stopping))
        await stopping[0]

    monkeypatch.setattr(database, "write", stopped_meanwhile)
    shop_service.run(run())
    assert leases(shop_service) == []
    assert [each["status"] for each in deliveries_of(shop_service, endpoint)] == ["DELIVERED"] * 3
    assert len(receiver.got) == 3


# --- leases of processes ---


def test_leases_of_a_process_that_is_gone_are_released_at_once(
    shop_service: Service, courier: Courier, other: Courier, stranded: tuple[Any, Receiver]
) -> None:
    """What a process of this machine held when it was killed is delivered by another without waiting for the lease."""
    _, receiver = stranded
    courier.die()
    receiver.answer = 204
    with a_process() as child:
        named(shop_service, worker_named(child.pid, began(child.pid)))
        other.release()
        assert len(leases(shop_service)) == 1
    other.release()
    assert leases(shop_service) == []
    other.deliver()
    assert len(receiver.got) == 2


def test_leases_of_a_process_whose_id_was_given_anew_are_released(
    shop_service: Service, courier: Courier, other: Courier, stranded: tuple[Any, Receiver]
) -> None:
    """A process with the id of the dead one, begun at another time, does not keep its leases for it."""
    courier.die()
    named(shop_service, worker_named(os.getpid(), "1"))
    other.release()
    assert leases(shop_service) == []
    assert stranded[1].got


@pytest.mark.parametrize("where", ["this process", "another machine"])
def test_leases_of_others_are_left_alone(
    shop_service: Service,
    courier: Courier,
    other: Courier,
    stranded: tuple[Any, Receiver],
    clock: GivenClock,
    where: str,
) -> None:
    """Leases of a living process, and of any process elsewhere, are over when their time is and not before."""
    courier.die()
    if where == "another machine":
        named(shop_service, "another-boot-4026531836/999999/1/0123abcd/0")
    clock.move(LEASE)
    other.release()
    assert len(leases(shop_service)) == 1
    clock.move(1)
    other.release()
    assert leases(shop_service) == []
    assert stranded[1].got


def test_leases_that_were_lost_are_counted(
    shop_service: Service, courier: Courier, other: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """/metrics counts each claim whose worker did not come back, and none besides."""
    receiver = new_receiver(HANG)
    an_endpoint(shop_service, receiver.url)
    events(shop_service, 3)
    courier.turn()
    receiver.wait_for(3)
    other.release()
    assert figure(shop_service, "tradepost_webhook_leases_expired_total") == 0
    courier.die()
    clock.move(LEASE + 1)
    other.release()
    other.release()
    assert figure(shop_service, "tradepost_webhook_leases_expired_total") == 3
    receiver.release()
