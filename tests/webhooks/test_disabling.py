"""An endpoint that has done nothing but fail for days is disabled, and says why."""

from collections.abc import Callable
from typing import Any

import pytest

from tests import shop
from tests.given_clock import DAY, SECOND, GivenClock
from tests.service import Service
from tests.webhooks.courier import HANG, Courier, Receiver, an_endpoint, deliveries_of
from tradepost.clock import instant

HOUR = 3600 * SECOND

NewReceiver = Callable[..., Receiver]


def shown(service: Service, endpoint: Any) -> tuple[str, str | None]:
    """The status of an endpoint, and why."""
    found = shop.get(service, f"/v1/webhook-endpoints/{endpoint['id']}")
    return found["status"], found["disabledReason"]


def enable(service: Service, endpoint: Any) -> None:
    path = f"/v1/webhook-endpoints/{endpoint['id']}"
    assert service.call("PATCH", path, {"status": "ENABLED"}).status == 200


def event(service: Service, courier: Courier) -> None:
    shop.a_user(service)
    courier.deliver()


def fails_for(service: Service, courier: Courier, clock: GivenClock, ms: int) -> None:
    """Time passes, with an event now and then, the last of them at its end."""
    for step in (*[2 * DAY] * (ms // (2 * DAY)), ms % (2 * DAY)):
        clock.move(step)
        event(service, courier)


ENABLED = ("ENABLED", None)


@pytest.mark.parametrize("fails", ["refuses", "is not there"])
def test_nothing_but_failures_for_five_days_disables(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock, fails: str
) -> None:
    """The failure that completes five days of them disables the endpoint with a reason that names the first; none before."""
    receiver = new_receiver(500)
    if fails == "is not there":
        receiver.stop()
    endpoint = an_endpoint(shop_service, receiver.url)
    clock.move(9 * DAY)
    began = clock.now_ms()
    for ms in (0, 2 * DAY, 3 * DAY - SECOND):
        fails_for(shop_service, courier, clock, ms)
        assert shown(shop_service, endpoint) == ENABLED
    clock.move(SECOND)
    assert shown(shop_service, endpoint) == ENABLED
    event(shop_service, courier)
    assert shown(shop_service, endpoint) == ("DISABLED", f"Nothing but failures since {instant(began)}.")


def test_time_without_deliveries_is_no_failure(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """However long ago it failed, an endpoint is disabled by a failure and by nothing else; a success prevents it."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    event(shop_service, courier)
    receiver.answer = 204
    clock.move(30 * DAY)
    courier.deliver()
    receiver.answer = 500
    event(shop_service, courier)
    assert shown(shop_service, endpoint) == ENABLED
    assert receiver.got[-1].event["attempt"] == 0


def test_one_success_begins_the_count_anew(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """A single success between failures, and the five days are counted from the first failure after it."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    event(shop_service, courier)
    clock.move(4 * DAY)
    receiver.answer = lambda delivery: 500 if delivery.event["attempt"] else 204
    event(shop_service, courier)
    receiver.answer = 500
    clock.move(HOUR)
    event(shop_service, courier)
    began = clock.now_ms()
    fails_for(shop_service, courier, clock, 5 * DAY - SECOND)
    assert shown(shop_service, endpoint) == ENABLED
    clock.move(SECOND)
    event(shop_service, courier)
    assert shown(shop_service, endpoint) == ("DISABLED", f"Nothing but failures since {instant(began)}.")


def test_a_quiet_time_begins_the_count_anew(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """What failed before half of the five days without anything does not count: nothing says that it failed meanwhile."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    event(shop_service, courier)
    for _ in range(12):
        clock.move(6 * HOUR + HOUR // 2)
        courier.deliver()
    assert {each["status"] for each in deliveries_of(shop_service, endpoint)} == {"ABANDONED"}
    clock.move(3 * DAY)
    began = clock.now_ms()
    event(shop_service, courier)
    assert shown(shop_service, endpoint) == ENABLED
    fails_for(shop_service, courier, clock, 5 * DAY)
    assert shown(shop_service, endpoint) == ("DISABLED", f"Nothing but failures since {instant(began)}.")


def test_a_new_url_begins_the_count_anew(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """What failed at the old one says nothing of the new one."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    event(shop_service, courier)
    fails_for(shop_service, courier, clock, 5 * DAY - SECOND)
    path = f"/v1/webhook-endpoints/{endpoint['id']}"
    assert shop_service.call("PATCH", path, {"url": f"{receiver.url}/2"}).status == 200
    clock.move(SECOND)
    event(shop_service, courier)
    assert shown(shop_service, endpoint) == ENABLED


def test_other_endpoints_stay_enabled(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """Each endpoint is judged by its own deliveries."""
    healthy, dead = new_receiver(), new_receiver(500)
    fine, broken = an_endpoint(shop_service, healthy.url), an_endpoint(shop_service, dead.url)
    event(shop_service, courier)
    fails_for(shop_service, courier, clock, 5 * DAY)
    assert shown(shop_service, fine) == ENABLED
    assert shown(shop_service, broken)[0] == "DISABLED"


@pytest.mark.parametrize(("days", "ms"), [("0.5", DAY // 2), ("20", 20 * DAY)])
def test_how_long_is_a_setting(
    engine: str, new_service: Callable[..., Service], clock: GivenClock, days: str, ms: int
) -> None:
    """TRADEPOST_WEBHOOK_DISABLE_DAYS says how long, in days."""
    service = new_service(engine, clock=clock, webhook_allow_private="1", webhook_disable_days=days)
    courier, receiver = Courier(service), Receiver(service, 500)
    endpoint = an_endpoint(service, receiver.url)
    event(service, courier)
    fails_for(service, courier, clock, ms - SECOND)
    assert shown(service, endpoint) == ENABLED
    clock.move(SECOND)
    event(service, courier)
    assert shown(service, endpoint)[0] == "DISABLED"
    courier.stop()
    receiver.stop()


def test_a_disabled_endpoint_gets_nothing_new(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """Nothing that happens is queued for it any more, what is pending waits, and others are told as before."""
    receiver, other = new_receiver(500), new_receiver()
    endpoint = an_endpoint(shop_service, receiver.url)
    event(shop_service, courier)
    for days in (2, 2, 1):
        clock.move(days * DAY)
        courier.deliver()
    assert shown(shop_service, endpoint)[0] == "DISABLED"
    before = deliveries_of(shop_service, endpoint)
    an_endpoint(shop_service, other.url)
    count = len(receiver.got)
    clock.move(2 * DAY)
    event(shop_service, courier)
    assert deliveries_of(shop_service, endpoint) == before
    assert [each["status"] for each in before] == ["PENDING"]
    assert (len(receiver.got), len(other.got)) == (count, 1)


def test_enabling_it_begins_the_count_anew(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """Once enabled again it gets what waited and what happens, and has five days before it is disabled once more."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    event(shop_service, courier)
    fails_for(shop_service, courier, clock, 5 * DAY)
    assert shown(shop_service, endpoint)[0] == "DISABLED"
    waiting = [each["eventId"] for each in deliveries_of(shop_service, endpoint)]
    clock.move(DAY)
    receiver.got.clear()
    enable(shop_service, endpoint)
    assert shown(shop_service, endpoint) == ENABLED
    event(shop_service, courier)
    assert len(receiver.got) == len({*receiver.ids(), *waiting}) == len(waiting) + 1
    began = clock.now_ms()
    fails_for(shop_service, courier, clock, 5 * DAY - SECOND)
    assert shown(shop_service, endpoint) == ENABLED
    clock.move(SECOND)
    event(shop_service, courier)
    assert shown(shop_service, endpoint) == ("DISABLED", f"Nothing but failures since {instant(began)}.")


def test_a_success_counts_even_if_it_was_out_when_another_failed(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver
) -> None:
    """Of two deliveries that are out together one fails and then one succeeds: the endpoint does not fail."""
    slow: list[str] = []
    receiver = new_receiver(lambda delivery: HANG if delivery.id in slow else 500)
    endpoint = an_endpoint(shop_service, receiver.url)
    for _ in range(2):
        shop.a_user(shop_service)
    slow.append(deliveries_of(shop_service, endpoint)[0]["eventId"])
    attempts = shop_service.app.metrics.deliveries.attempts
    courier.deliver_until(lambda: bool(attempts.get("5xx")))
    courier.turn()
    assert failing_since(shop_service, endpoint) is not None
    receiver.release(204)
    courier.deliver()
    assert failing_since(shop_service, endpoint) is None


def failing_since(service: Service, endpoint: Any) -> str | None:
    ((since,),) = service.rows(f"SELECT failing_since FROM webhook_endpoints WHERE id = '{endpoint['id']}'")
    return None if since is None else str(since)
