"""Isolation: whoever hangs or fails has a few slots and no more, and delays neither others nor itself."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import cycle

import pytest

from tests import shop
from tests.conformance.store import sql
from tests.given_clock import SECOND, GivenClock
from tests.service import Service
from tests.waiting import until
from tests.webhooks.courier import HANG, Courier, Receiver, an_endpoint, deliveries_of, events
from tradepost.clock import instant
from tradepost.domain.webhook_delivery import RETRY_SLOTS, SLOTS
from tradepost.events.outbox import delivery
from tradepost.storage.database import Row, Writing
from tradepost.storage.statements.webhook_deliveries import CANDIDATES, LANES_AT_ONCE, QUEUE
from tradepost.webhooks import worker
from tradepost.webhooks.failure_throttle import STEP_MS
from tradepost.webhooks.fairness import Candidate

NewReceiver = Callable[..., Receiver]

# --- one that hangs ---


def test_one_that_hangs_has_four_slots_and_delays_nobody(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver
) -> None:
    """While all of one endpoint's slots hang, each of another's events arrives; the first never has a fifth open."""
    hanging, healthy = new_receiver(HANG), new_receiver()
    stuck = an_endpoint(shop_service, hanging.url)
    an_endpoint(shop_service, healthy.url)
    for count in (12, 24):
        events(shop_service, 12)
        courier.deliver_until(partial(all_have_got, [healthy], count))
    hanging.wait_for(4)
    courier.turn()
    assert (len(hanging.got), hanging.now_open) == (4, 4)
    assert {each["status"] for each in deliveries_of(shop_service, stuck)} == {"PENDING"}
    hanging.release()
    courier.deliver()
    assert sorted(hanging.ids()) == sorted(healthy.ids())
    assert hanging.most_open == 4


def all_have_got(receivers: list[Receiver], count: int) -> bool:
    return all(len(each.got) >= count for each in receivers)


def test_a_failing_endpoint_gets_its_newer_event_with_the_next_step(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """However many retries are due for an endpoint, two of them go, and with them what happens now."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    events(shop_service, 200)
    courier.deliver()
    assert {each["attempts"][0]["responseStatus"] for each in deliveries_of(shop_service, endpoint)} == {500}
    clock.move(6 * SECOND)
    receiver.answer = HANG
    receiver.got.clear()
    for count in (3, 4):
        shop.a_user(shop_service)
        clock.move(50)
        courier.turn()
        receiver.wait_for(count)
    assert Counter(each.event["attempt"] for each in receiver.got) == {0: 2, 1: 2}


def test_one_that_only_fails_is_tried_at_a_walking_pace_until_it_works(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """After a second of failures only, four deliveries go each 50 ms, however fast they fail; then all at once."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    events(shop_service, 12)
    courier.deliver()
    assert len(receiver.got) == 12
    clock.move(SECOND)
    events(shop_service, 40)
    for step, count in ((0, 16), (49, 16), (1, 20), (50, 24)):
        clock.move(step)
        courier.deliver()
        assert len(receiver.got) == count
    receiver.answer = 204
    clock.move(50)
    courier.deliver()
    assert len(receiver.got) == 12 + 40
    statuses = Counter(each["status"] for each in deliveries_of(shop_service, endpoint))
    assert statuses == {"PENDING": 12 + 12, "DELIVERED": 28}


def test_one_that_also_works_is_never_slowed_down(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """An endpoint that fails half of the time, for hours, gets what is new at once."""
    answers = cycle([204, 500])
    receiver = new_receiver(lambda _: next(answers))
    an_endpoint(shop_service, receiver.url)
    for hour in range(1, 4):
        events(shop_service, 20)
        courier.deliver()
        assert Counter(each.event["attempt"] for each in receiver.got)[0] == 20 * hour
        clock.move(3600 * SECOND)


def test_a_flood_of_new_events_does_not_hold_up_a_retry(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """However many events are new, a retry that is due goes with the next turn."""
    receiver = new_receiver(500)
    an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    courier.deliver()
    clock.move(6 * SECOND)
    receiver.answer = HANG
    receiver.got.clear()
    events(shop_service, 50)
    courier.turn()
    receiver.wait_for(4)
    assert Counter(each.event["attempt"] for each in receiver.got) == {0: 3, 1: 1}


def test_redeliveries_give_way_to_what_happens_now(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """Deliveries asked for again have half of the slots, however many they are; what happens now has the others."""
    receiver = new_receiver()
    endpoint = an_endpoint(shop_service, receiver.url)
    events(shop_service, 30)
    courier.deliver()
    clock.move(SECOND)
    again = {"endpointId": endpoint["id"], "from": "2026-11-20T00:00:00Z"}
    shop_service.made("/v1/webhook-deliveries", again)
    clock.move(15 * SECOND)
    shop_service.run(courier.deliveries.upkeep.redeliver())
    before = set(receiver.ids())
    receiver.answer = HANG
    receiver.got.clear()
    events(shop_service, 2)
    courier.turn()
    receiver.wait_for(4)
    assert Counter(each in before for each in receiver.ids()) == {True: 2, False: 2}


@pytest.mark.parametrize("status", ["ENABLED", "DISABLED"])
def test_hundreds_of_dead_endpoints_delay_nobody(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock, status: str
) -> None:
    """Behind more endpoints than a look takes in, disabled or with retries to come, an event still goes out at once."""
    dead = an_endpoint(shop_service, "https://192.0.43.8/", "order.*", status=status)
    retried_at = clock.now_ms() + (30 * SECOND if status == "ENABLED" else -SECOND)
    shop_service.run(_multiply(shop_service, dead["id"], 2 * LANES_AT_ONCE, instant(retried_at)))
    receiver = new_receiver()
    an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    for _ in range(9):
        if courier.turn() > 0:
            break
    courier.settle()
    assert len(receiver.got) == 1


@pytest.mark.parametrize("place", ["before them", "behind them"])
def test_more_that_hang_than_there_is_room_for_leave_others_their_turn(
    engine: str,
    new_service: Callable[..., Service],
    clock: GivenClock,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    """Where endpoints that hang could take all that a worker has room for, another still gets its turn among them."""
    monkeypatch.setattr(worker, "_CAPACITY", 2 * SLOTS)
    service = new_service(engine, clock=clock, webhook_allow_private="1", webhook_timeout="0.1")
    courier, hanging, healthy = Courier(service), Receiver(service, HANG), Receiver(service)
    urls = [(hanging.url, "user.created")] * 4
    urls.insert(0 if place == "before them" else 4, (healthy.url, "product.created"))
    for url, event_type in urls:
        an_endpoint(service, url, event_type)
    events(service, 20)
    clock.move(SECOND)
    for _ in range(6):
        shop.a_product(service)
    courier.deliver_until(partial(all_have_got, [healthy], 6))
    assert len(hanging.got) < 4 * 20
    hanging.release()
    courier.stop()
    hanging.stop()
    healthy.stop()


COPY = sql(
    "INSERT INTO webhook_endpoints (id, url, event_types, content_type, status, created_at, updated_at, version)"
    " SELECT CAST(:id AS text), url, event_types, content_type, status, created_at, updated_at, version"
    " FROM webhook_endpoints WHERE id = :like"
)


async def _multiply(service: Service, endpoint_id: str, count: int, due: str) -> None:
    """Makes so many more like an endpoint, with ids below any other's, each with a delivery."""
    ids = [f"00000000-0000-7000-8000-{n:012x}" for n in range(count)]
    waiting = [delivery(each, each, due, event_type="none", later=1) for each in ids]

    async def work(tx: Writing) -> None:
        await tx.many(COPY, [{"id": each, "like": endpoint_id} for each in ids])
        await tx.many(QUEUE, waiting)

    await service.app.rest.performer.database.write(work)


def test_those_that_only_fail_leave_half_of_the_places_to_others(
    engine: str, new_service: Callable[..., Service], clock: GivenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many hang of those that only fail, one that works gets its event with the next turn."""
    monkeypatch.setattr(worker, "_CAPACITY", 4 * SLOTS)
    service = new_service(engine, clock=clock, webhook_allow_private="1")
    courier, hanging, healthy = Courier(service), Receiver(service, 500), Receiver(service)
    for number in range(6):
        an_endpoint(service, f"{hanging.url}/{number}")
    events(service, 4)
    courier.deliver()
    clock.move(SECOND)
    hanging.answer = HANG
    hanging.got.clear()
    events(service, 8)
    courier.deliver_until(lambda: hanging.now_open == 2 * SLOTS)
    an_endpoint(service, healthy.url, "product.created")
    for count in (1, 2, 3):
        shop.a_product(service)
        courier.turn()
        service.run(until(partial(all_have_got, [healthy], count)))
    assert hanging.most_open == 2 * SLOTS
    hanging.release(500)
    for _ in range(12):
        courier.settle()
        clock.move(STEP_MS)
        courier.turn()
    assert len(Counter(each.path for each in hanging.got)) == 6
    for each in (courier, hanging, healthy):
        each.stop()


def test_as_many_wait_at_the_head_of_a_queue_as_may_have_slots(shop_service: Service) -> None:
    """However long the queues of an endpoint are, a claim reads no more of each than could go at once."""
    endpoint = an_endpoint(shop_service, "https://192.0.43.8/")
    now_at = instant(0)
    waiting = [
        delivery(f"{queue}-{number}", endpoint["id"], now_at, event_type="none", later=queue)
        for queue in (0, 1, 2)
        for number in range(2 * SLOTS)
    ]

    async def read() -> list[Row]:
        database = shop_service.app.rest.performer.database
        await database.write(lambda tx: tx.many(QUEUE, waiting))
        return await database.reading().rows(CANDIDATES, lanes=[endpoint["id"]], now=now_at)

    candidates = [Candidate(*row[: len(Candidate._fields)]) for row in shop_service.run(read())]
    heads = Counter(each.queue for each in candidates)
    assert heads == {0: SLOTS, 1: RETRY_SLOTS, 2: RETRY_SLOTS}


# --- workers side by side ---


@pytest.fixture
def new_courier(shop_service: Service) -> Iterator[Callable[[], Courier]]:
    """Makes couriers of one service, which work on its database side by side."""
    with ExitStack() as life:

        def new() -> Courier:
            made = Courier(shop_service)
            life.callback(made.stop)
            return made

        yield new


async def turns(couriers: list[Courier]) -> None:
    """A turn of each, all at the same time."""
    await asyncio.gather(*[each.deliveries.worker.turn() for each in couriers])


@pytest.mark.parametrize("count", [2, 3])
def test_workers_together_deliver_each_event_once_to_each_endpoint(
    shop_service: Service, new_courier: Callable[[], Courier], new_receiver: NewReceiver, count: int
) -> None:
    """Workers that look at the same moment claim nothing twice and leave nothing; together they keep to the slots."""
    couriers = [new_courier() for _ in range(count)]
    receivers = [new_receiver(HANG) for _ in range(3)]
    endpoints = [an_endpoint(shop_service, each.url) for each in receivers]
    events(shop_service, 200)
    for _ in range(6):
        shop_service.run(turns(couriers))
    for receiver in receivers:
        receiver.wait_for(SLOTS)
        receiver.release()
    everything = partial(all_have_got, receivers, 200)
    shop_service.run(until(everything, partial(turns, couriers)))
    for courier in couriers:
        courier.deliver()
    for receiver, endpoint in zip(receivers, endpoints, strict=True):
        assert len(receiver.got) == len(set(receiver.ids())) == 200
        assert receiver.most_open == SLOTS
        assert {each["status"] for each in deliveries_of(shop_service, endpoint)} == {"DELIVERED"}


def test_workers_together_keep_to_the_slots_of_retries(
    shop_service: Service, new_courier: Callable[[], Courier], new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """However many workers look, an endpoint never has more than two retries open, and newer events have the rest."""
    couriers = [new_courier() for _ in range(3)]
    receiver = new_receiver(500)
    an_endpoint(shop_service, receiver.url)
    events(shop_service, 20)
    couriers[0].deliver()
    clock.move(6 * SECOND)
    receiver.answer = HANG
    receiver.got.clear()
    for _ in range(4):
        shop_service.run(turns(couriers))
    receiver.wait_for(RETRY_SLOTS)
    events(shop_service, 20)
    for _ in range(4):
        shop_service.run(turns(couriers))
    receiver.wait_for(SLOTS)
    assert Counter(each.event["attempt"] for each in receiver.got) == {0: 2, 1: 2}
