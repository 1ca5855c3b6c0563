"""When a delivery is tried again: eight attempts over 31 hours, none early, none much too late."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from tests import shop
from tests.given_clock import SECOND, GivenClock
from tests.service import Service
from tests.webhooks.courier import Courier, Receiver, an_endpoint, deliveries_of
from tradepost.clock import parse_instant
from tradepost.settings import Settings
from tradepost.webhooks import verify
from tradepost.webhooks.retry_schedule import RetrySchedule

DELAYS = (5, 30, 120, 600, 3600, 21_600, 86_400)  # specification 6.5

NewReceiver = Callable[..., Receiver]


@given(st.integers(0, 6), st.integers(0, 10**13))
def test_a_retry_is_never_early_and_at_most_a_tenth_late(number: int, ended: int) -> None:
    """The retry after an attempt is due after its delay, and no more than 10 % of that later."""
    due = RetrySchedule(Settings().webhook_schedule).after(number, ended, None)
    assert due is not None
    assert ended + 1000 * DELAYS[number] <= due <= ended + 1100 * DELAYS[number]


@given(st.integers(7, 100), st.none() | st.floats(0, 10**9))
def test_after_the_last_retry_there_is_no_other(number: int, retry_after: float | None) -> None:
    """The seventh retry is the last, whatever the receiver asks for."""
    assert RetrySchedule(Settings().webhook_schedule).after(number, 0, retry_after) is None


@given(st.integers(0, 6), st.floats(0, 30 * 24 * 3600))
def test_a_longer_retry_after_is_honoured(number: int, retry_after: float) -> None:
    """A receiver that asks for more time gets it; one that asks for less does not come earlier."""
    due = RetrySchedule(Settings().webhook_schedule).after(number, 0, retry_after)
    assert due is not None
    assert due >= 1000 * max(DELAYS[number], retry_after)


def test_eight_attempts_over_31_hours_then_abandoned(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """A receiver that always fails gets attempts 0 to 7, each signed anew and never early; then it is over."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    for number in range(8):
        courier.deliver()
        assert [each.event["attempt"] for each in receiver.got] == list(range(number + 1))
        newest = receiver.got[-1]
        verify(newest.body, newest.headers["x-signature-256"], endpoint["secret"], now=clock.now_ms() / 1000)
        [shown] = deliveries_of(shop_service, endpoint)
        if number == 7:
            break
        due = parse_instant(shown["nextAttemptAt"])
        assert (
            clock.now_ms() + DELAYS[number] * SECOND <= due <= clock.now_ms() + 1.1 * DELAYS[number] * SECOND
        )
        clock.ms = due - 1
        courier.deliver()
        assert len(receiver.got) == number + 1
        clock.ms = due
    assert (shown["status"], shown["nextAttemptAt"]) == ("ABANDONED", None)
    assert [each["number"] for each in shown["attempts"]] == list(range(8))
    assert len({each.id for each in receiver.got}) == 1
    assert len({each.event["time"] for each in receiver.got}) == 1
    assert len({each.event["signedat"] for each in receiver.got}) == 8
    clock.move(100 * 24 * 3600 * SECOND)
    courier.deliver()
    assert len(receiver.got) == 8


def test_a_receiver_that_was_down_for_six_retries_gets_it_at_the_seventh(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """A receiver that comes back before the last retry gets the event, and it counts as delivered."""
    receiver = new_receiver(lambda delivery: 204 if delivery.event["attempt"] == 7 else 503)
    endpoint = an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    for _ in range(8):
        courier.deliver()
        [shown] = deliveries_of(shop_service, endpoint)
        clock.ms = max(clock.ms, parse_instant(shown["nextAttemptAt"] or shown["updatedAt"]))
    assert shown["status"] == "DELIVERED"
    assert [each["responseStatus"] for each in shown["attempts"]] == [503] * 7 + [204]


def test_retry_after_is_honoured_over_the_wire(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """A 429 with Retry-After: 120 is not tried again before two minutes are over."""
    receiver = new_receiver(lambda _: (429, {"Retry-After": "120"}))
    endpoint = an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    courier.deliver()
    [shown] = deliveries_of(shop_service, endpoint)
    assert parse_instant(shown["nextAttemptAt"]) >= clock.now_ms() + 120 * SECOND


def test_newer_events_do_not_wait_for_failed_ones(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver
) -> None:
    """While an event waits to be tried again, a newer one of the same endpoint arrives."""
    first: list[str] = []
    receiver = new_receiver(lambda delivery: 500 if delivery.id in first else 204)
    endpoint = an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    first.append(deliveries_of(shop_service, endpoint)[0]["eventId"])
    courier.deliver()
    shop.a_user(shop_service)
    courier.deliver()
    assert [each["status"] for each in deliveries_of(shop_service, endpoint)] == ["PENDING", "DELIVERED"]


def test_a_worker_looks_when_the_next_is_due(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """It waits no longer than until then; with nothing due soon a second, in case a hint was lost."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    courier.deliver()
    assert courier.turn() == 1.0
    [shown] = deliveries_of(shop_service, endpoint)
    due = parse_instant(shown["nextAttemptAt"])
    clock.move(due - clock.now_ms() - 250)
    assert courier.turn() == 0.25
    clock.move(250)
    assert courier.turn() == 1.0
    courier.settle()
    assert len(receiver.got) == 2


def test_a_retry_does_not_wait_behind_redeliveries(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """Whatever an endpoint is to get once more waits until its retries, which have their time, are out."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    courier.deliver()
    failed = receiver.got[0].id
    again = {"endpointId": endpoint["id"], "eventId": failed}
    made = {shop_service.made("/v1/webhook-deliveries", again)["id"] for _ in range(20)}
    clock.move(6 * SECOND)
    courier.turn()
    courier.settle()
    assert sorted(each.event["attempt"] for each in receiver.got[1:]) == [0, 1]
    assert len(made) == 20
