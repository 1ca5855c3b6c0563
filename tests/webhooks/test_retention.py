"""Retention: what is over is forgotten after its time, what is still to be delivered never is."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests import shop
from tests.conformance.store import sql
from tests.given_clock import DAY, GivenClock
from tests.service import Service
from tests.webhooks.courier import Courier, Receiver, an_endpoint, deliveries_of, events
from tradepost.clock import instant, parse_instant
from tradepost.domain.ids import Ids
from tradepost.events.outbox import delivery
from tradepost.housekeeping import Housekeeping
from tradepost.storage.database import Writing
from tradepost.storage.statements.webhook_deliveries import QUEUE

COUNTS = sql("SELECT status, count(*) FROM webhook_deliveries GROUP BY status")
DAYS = 30
PIECE = 1000

NewReceiver = Callable[..., Receiver]


def purge(service: Service, days: int = DAYS) -> None:
    """A round of housekeeping."""
    performer = service.app.rest.performer
    service.run(Housekeeping(performer.database, performer.clock, service.app.metrics, days).purge())


def newer(service: Service) -> None:
    """Something nobody is told of: the newest event is kept in any case."""
    shop.a_product(service)


def events_left(service: Service) -> set[str]:
    return {row[0] for row in service.rows("SELECT id FROM events WHERE type LIKE '%user.created'")}


@pytest.mark.parametrize("ends", ["DELIVERED", "ABANDONED"])
def test_what_is_over_is_forgotten_after_its_time(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock, ends: str
) -> None:
    """A finished delivery and its event are there for 30 days, and after them no more."""
    receiver = new_receiver(204 if ends == "DELIVERED" else 500)
    endpoint = an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    for _ in range(8):
        courier.deliver()
        [shown] = deliveries_of(shop_service, endpoint)
        clock.ms = max(clock.ms, parse_instant(shown["nextAttemptAt"] or instant(0)))
    newer(shop_service)
    clock.move(DAYS * DAY)
    purge(shop_service)
    assert [each["status"] for each in deliveries_of(shop_service, endpoint)] == [ends]
    clock.move(1)
    purge(shop_service)
    assert deliveries_of(shop_service, endpoint) == []
    assert events_left(shop_service) == set()


def test_the_time_is_counted_from_the_end(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """A delivery that was made long ago and delivered a day ago can still be read."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    courier.deliver()
    clock.move(2 * DAYS * DAY)
    receiver.answer = 204
    courier.deliver()
    clock.move(DAY)
    purge(shop_service)
    assert [each["status"] for each in deliveries_of(shop_service, endpoint)] == ["DELIVERED"]


def test_what_is_pending_is_kept_however_old_and_delivered(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """Events that an endpoint has still to get, as it was disabled for a year, are kept and arrive; others go."""
    receiver, other = new_receiver(500), new_receiver()
    endpoint = an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    [event_id] = events_left(shop_service)
    courier.deliver()
    path = f"/v1/webhook-endpoints/{endpoint['id']}"
    assert shop_service.call("PATCH", path, {"status": "DISABLED"}).status == 200
    done = an_endpoint(shop_service, other.url)
    events(shop_service, 3)
    courier.deliver()
    newer(shop_service)
    for _ in range(3):
        clock.move(120 * DAY)
        purge(shop_service)
    assert deliveries_of(shop_service, done) == []
    assert events_left(shop_service) == {event_id}
    receiver.answer = 204
    assert shop_service.call("PATCH", path, {"status": "ENABLED"}).status == 200
    courier.deliver()
    assert [(each.id, each.event["attempt"]) for each in receiver.got] == [(event_id, 0), (event_id, 1)]
    assert receiver.got[0].event["data"] == receiver.got[1].event["data"]
    clock.move((DAYS + 1) * DAY)
    purge(shop_service)
    assert events_left(shop_service) == set()


def test_what_is_out_is_kept(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """A delivery that a worker is at, and its event, are there when it comes to its end."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    courier.deliver()
    newer(shop_service)
    clock.move(2 * DAYS * DAY)
    receiver.answer = 204
    courier.turn()
    purge(shop_service)
    courier.settle()
    courier.turn()
    assert [each["status"] for each in deliveries_of(shop_service, endpoint)] == ["DELIVERED"]
    assert len(set(receiver.ids())) == 1


def test_housekeeping_goes_in_pieces(
    shop_service: Service, clock: GivenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much is past its time, no transaction forgets or abandons more than a thousand deliveries; all go."""
    gone = an_endpoint(shop_service, "https://192.0.43.8/", "order.*")
    assert shop_service.call("DELETE", f"/v1/webhook-endpoints/{gone['id']}").status == 204
    fill(shop_service, clock, gone["id"], {"DELIVERED": 2500, "PENDING": 2500})
    clock.move((DAYS + 1) * DAY)
    database = shop_service.app.rest.performer.database
    write, changed = database.write, []

    async def watched(work: Any) -> Any:
        before = await left()
        result = await write(work)
        after = await left()
        changed.append(max(abs(before[status] - after.get(status, 0)) for status in before))
        return result

    async def left() -> dict[str, int]:
        return dict(await write(lambda tx: tx.rows(COUNTS)))

    monkeypatch.setattr(database, "write", watched)
    purge(shop_service)
    assert max(changed) <= PIECE
    assert shop_service.run(left()) == {"ABANDONED": 2500}


def fill(service: Service, clock: GivenClock, endpoint_id: str, counts: dict[str, int]) -> None:
    """Deliveries of an endpoint, so many of each status."""
    ids, now = Ids(), instant(clock.now_ms())
    rows = [
        delivery(ids.new(clock.now_ms()), endpoint_id, now, event_type="none", status=status)
        | ({} if status == "PENDING" else {"next_attempt_at": None})
        for status, count in counts.items()
        for _ in range(count)
    ]

    async def work(tx: Writing) -> None:
        await tx.many(QUEUE, rows)

    service.run(service.app.rest.performer.database.write(work))


def test_a_delivery_whose_event_is_gone_is_given_up(
    shop_service: Service, courier: Courier, new_receiver: Callable[..., Receiver]
) -> None:
    """Where there is nothing left to send, nothing is sent in its place, and nobody waits for it."""
    receiver = new_receiver()
    endpoint = an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    shop_service.rows("DELETE FROM events")
    courier.deliver()
    assert receiver.got == []
    [shown] = deliveries_of(shop_service, endpoint)
    assert (shown["status"], shown["attempts"], shown["nextAttemptAt"]) == ("ABANDONED", [], None)


def test_housekeeping_goes_on_whatever_happens(
    shop_service: Service, clock: GivenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure that nobody foresaw ends neither the housekeeping nor, later, the shutdown."""
    performer, metrics = shop_service.app.rest.performer, shop_service.app.metrics
    keeping, tried = Housekeeping(performer.database, clock, metrics, DAYS), asyncio.Event()

    async def broken() -> None:
        tried.set()
        raise ZeroDivisionError

    async def run() -> bool:
        task = asyncio.ensure_future(keeping.run())
        await tried.wait()
        await asyncio.sleep(0)
        running = not task.done()
        task.cancel()
        return running

    monkeypatch.setattr(keeping, "purge", broken)
    assert shop_service.run(run())
