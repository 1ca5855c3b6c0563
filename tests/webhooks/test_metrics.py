"""The figures of deliveries at /metrics are what happened to known ones."""

from collections.abc import Callable

from tests import shop
from tests.given_clock import DAY, SECOND, GivenClock
from tests.service import Service
from tests.webhooks.courier import Courier, Receiver, a_secret, an_endpoint, deliveries_of, events
from tests.webhooks.figures import figure
from tradepost.clock import parse_instant

NewReceiver = Callable[..., Receiver]

OUTCOMES = ("1xx", "2xx", "3xx", "4xx", "5xx", "unanswered")


def attempts(service: Service) -> dict[str, float]:
    """Requests so far, by outcome."""
    counts = {each: figure(service, "tradepost_webhook_attempts_total", outcome=each) for each in OUTCOMES}
    return {outcome: count for outcome, count in counts.items() if count}


def waiting(service: Service, courier: Courier) -> tuple[float, float]:
    """How many deliveries are pending, and for how many seconds the first has been due."""
    service.run(courier.deliveries.upkeep.measure())
    return figure(service, "tradepost_webhook_pending"), figure(
        service, "tradepost_webhook_oldest_due_seconds"
    )


def test_requests_are_counted_by_outcome(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver
) -> None:
    """Each request counts under the class of its answer, or as unanswered; and the time of each is taken."""
    for status, count in ((204, 3), (200, 1), (302, 2), (401, 1), (410, 1), (503, 2)):
        for _ in range(count):
            an_endpoint(shop_service, new_receiver(status).url)
    gone = new_receiver()
    an_endpoint(shop_service, gone.url)
    gone.stop()
    assert attempts(shop_service) == {}
    shop.a_user(shop_service)
    courier.deliver()
    assert attempts(shop_service) == {"2xx": 4, "3xx": 2, "4xx": 2, "5xx": 2, "unanswered": 1}
    assert figure(shop_service, "tradepost_webhook_attempt_seconds_count") == 11
    assert figure(shop_service, "tradepost_webhook_attempt_seconds_bucket", le="5.0") == 11


def test_both_requests_of_an_attempt_are_counted(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver
) -> None:
    """While a secret is rotated, an attempt that is repeated under the old one is two requests and one lag."""
    endpoint = an_endpoint(shop_service, (receiver := new_receiver()).url)
    a_secret(shop_service, endpoint)
    receiver.answer = lambda delivery: 204 if delivery.is_signed_with(endpoint["secret"]) else 401
    shop.a_user(shop_service)
    courier.deliver()
    assert attempts(shop_service) == {"2xx": 1, "4xx": 1}
    assert figure(shop_service, "tradepost_webhook_lag_seconds_count") == 1


def test_lag_is_from_when_it_was_due(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """An attempt counts with the time from when it was due to when it began, a retry too."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    clock.move(300)
    courier.deliver()
    receiver.answer = 204
    [shown] = deliveries_of(shop_service, endpoint)
    clock.ms = parse_instant(shown["nextAttemptAt"]) + 7 * SECOND
    courier.deliver()
    assert figure(shop_service, "tradepost_webhook_lag_seconds_count") == 2
    assert figure(shop_service, "tradepost_webhook_lag_seconds_sum") == 7.3
    within = [
        figure(shop_service, "tradepost_webhook_lag_seconds_bucket", le=le) for le in ("0.25", "0.5", "5.0")
    ]
    assert within == [0, 1, 1]


def test_what_waits_is_measured(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """Pending is what is still to be delivered to enabled endpoints; its age is counted from when the first was due."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    an_endpoint(shop_service, new_receiver().url)
    assert waiting(shop_service, courier) == (0, 0)
    events(shop_service, 4)
    clock.move(1500)
    assert waiting(shop_service, courier) == (8, 1.5)
    courier.deliver()
    assert waiting(shop_service, courier) == (4, 0)
    clock.move(65 * SECOND)
    due = min(
        parse_instant(each["nextAttemptAt"])
        for each in deliveries_of(shop_service, endpoint)
        if each["nextAttemptAt"]
    )
    assert waiting(shop_service, courier) == (4, (clock.now_ms() - due) / 1000)
    path = f"/v1/webhook-endpoints/{endpoint['id']}"
    assert shop_service.call("PATCH", path, {"status": "DISABLED"}).status == 200
    assert waiting(shop_service, courier) == (0, 0)


def test_what_is_abandoned_is_counted(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """A delivery counts as abandoned when its last retry has failed, and not before; one that arrived never does."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    an_endpoint(shop_service, new_receiver().url)
    events(shop_service, 2)
    for _ in range(8):
        assert figure(shop_service, "tradepost_webhook_abandoned_total") == 0
        courier.deliver()
        due = [each["nextAttemptAt"] for each in deliveries_of(shop_service, endpoint)]
        clock.ms = max([clock.ms, *(parse_instant(each) for each in due if each)])
    assert figure(shop_service, "tradepost_webhook_abandoned_total") == 2
    assert attempts(shop_service) == {"2xx": 2, "5xx": 16}
    clock.move(DAY)
    assert waiting(shop_service, courier) == (0, 0)
