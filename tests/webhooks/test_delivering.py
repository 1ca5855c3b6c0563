"""Deliveries over the wire: what arrives, how often, and what the service then says of it."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests import shop
from tests.given_clock import GivenClock
from tests.service import Service
from tests.waiting import until
from tests.webhooks.courier import Courier, Receiver, an_endpoint, deliveries_of
from tradepost.events.event_type import EventType
from tradepost.housekeeping import Housekeeping
from tradepost.webhooks import verify, worker

NewReceiver = Callable[..., Receiver]


def test_an_event_arrives_signed_once_and_is_delivered(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """The endpoint gets the envelope that GET /events shows, with signedat and attempt, verifiable with its secret."""
    receiver = new_receiver()
    endpoint = an_endpoint(shop_service, receiver.url)
    user = shop.a_user(shop_service)
    courier.deliver()
    courier.deliver()
    [delivery] = receiver.got
    event = verify(
        delivery.body, delivery.headers["x-signature-256"], endpoint["secret"], now=clock.now_ms() / 1000
    )
    assert (event["attempt"], delivery.headers["content-type"]) == (0, "application/cloudevents+json")
    [shown] = deliveries_of(shop_service, endpoint)
    assert (shown["status"], shown["eventId"], shown["nextAttemptAt"]) == ("DELIVERED", event["id"], None)
    [attempt] = shown["attempts"]
    assert (attempt["number"], attempt["responseStatus"], attempt["error"]) == (0, 204, None)
    assert attempt["attemptedAt"] == event["signedat"]
    [logged] = shop.events_of(shop_service, f"users/{user['id']}")
    assert {name: event[name] for name in logged} == logged
    assert event.keys() - logged.keys() == {"signedat", "attempt"}


def test_a_worker_is_woken_by_what_happens(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event goes out at once, and not with the next look that a worker takes of its own accord."""
    monkeypatch.setattr(worker, "_LOOK_SECONDS", 3600.0)
    receiver = new_receiver()
    an_endpoint(shop_service, receiver.url)

    async def run() -> None:
        courier.deliveries.start()
        for count in (1, 2, 3):
            await asyncio.to_thread(shop.a_user, shop_service)
            await until(lambda count=count: len(receiver.got) == count)  # type: ignore[misc]

    shop_service.run(run())


def test_an_endpoint_may_have_it_as_plain_json(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver
) -> None:
    """An endpoint whose contentType is application/json gets the same body under that type."""
    receiver = new_receiver()
    an_endpoint(shop_service, receiver.url, contentType="application/json")
    shop.a_user(shop_service)
    courier.deliver()
    [delivery] = receiver.got
    assert delivery.headers["content-type"] == "application/json"
    assert delivery.event["specversion"] == "1.0"


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_an_acknowledgement(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, status: int
) -> None:
    """Whatever 2xx a receiver answers, the event is delivered."""
    endpoint = an_endpoint(shop_service, new_receiver(status).url)
    shop.a_user(shop_service)
    courier.deliver()
    assert [each["status"] for each in deliveries_of(shop_service, endpoint)] == ["DELIVERED"]


@pytest.mark.parametrize("status", [300, 302, 304, 400, 401, 404, 410, 429, 500, 503])
def test_anything_else_is_tried_again(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, status: int
) -> None:
    """Whatever else it answers, redirects and 410 included, the delivery is pending again; nothing is followed."""
    location = {"Location": "/elsewhere"}
    receiver = new_receiver(lambda _: (status, location))
    endpoint = an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    courier.deliver()
    [shown] = deliveries_of(shop_service, endpoint)
    assert (shown["status"], shown["attempts"][0]["responseStatus"]) == ("PENDING", status)
    assert [each.path for each in receiver.got] == ["/hook"]


def test_a_receiver_that_is_not_there_is_tried_again(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver
) -> None:
    """A connection that cannot be made is a failed attempt that says why."""
    receiver = new_receiver()
    endpoint = an_endpoint(shop_service, receiver.url)
    receiver.stop()
    shop.a_user(shop_service)
    courier.deliver()
    [shown] = deliveries_of(shop_service, endpoint)
    [attempt] = shown["attempts"]
    assert (shown["status"], attempt["responseStatus"], attempt["responseBody"]) == ("PENDING", None, None)
    assert attempt["error"]


def test_a_ping_arrives_without_an_event(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """A delivery of an endpoint alone is a webhook.ping about it, whatever types the endpoint takes."""
    receiver = new_receiver()
    endpoint = an_endpoint(shop_service, receiver.url, "order.*")
    ping = shop_service.made("/v1/webhook-deliveries", {"endpointId": endpoint["id"]})
    courier.deliver()
    [delivery] = receiver.got
    event = verify(
        delivery.body, delivery.headers["x-signature-256"], endpoint["secret"], now=clock.now_ms() / 1000
    )
    assert (event["id"], event["type"]) == (ping["id"], "dev.tradepost.webhook.ping")
    assert (event["subject"], event["time"]) == (f"webhook-endpoints/{endpoint['id']}", ping["createdAt"])
    assert event["source"] == "http://shop.example"
    assert event["dataschema"] == f"{event['source']}/event-types/{event['type']}"
    assert event["data"]["entityId"] == endpoint["id"]
    assert [each["status"] for each in deliveries_of(shop_service, endpoint)] == ["DELIVERED"]


def test_an_event_is_sent_again_when_asked(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver
) -> None:
    """A redelivery brings the same event with the same id, to the endpoint that is named."""
    receiver, other = new_receiver(), new_receiver()
    endpoint = an_endpoint(shop_service, receiver.url)
    elsewhere = an_endpoint(shop_service, other.url, "order.*")
    shop.a_user(shop_service)
    courier.deliver()
    event_id = receiver.got[0].id
    for each in (endpoint, elsewhere):
        shop_service.made("/v1/webhook-deliveries", {"endpointId": each["id"], "eventId": event_id})
    courier.deliver()
    assert [each.id for each in receiver.got] == [event_id, event_id]
    assert [each.id for each in other.got] == [event_id]


def test_events_of_a_stretch_of_time_are_sent_again(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """A redelivery by range brings every event of the types and the time asked for, those never delivered too."""
    began = "2026-11-20T08:00:00Z"
    for _ in range(3):
        shop.a_user(shop_service)
    shop.a_product(shop_service)
    clock.move(10_000)
    receiver = new_receiver()
    endpoint = an_endpoint(shop_service, receiver.url, "product.*")
    asked = {"endpointId": endpoint["id"], "from": began, "eventTypes": ["user.created"]}
    made = shop_service.made("/v1/webhook-deliveries", asked)
    clock.move(15_000)
    shop_service.run(courier.deliveries.upkeep.redeliver())
    courier.deliver()
    kinds = [each.event["type"] for each in receiver.got]
    assert kinds == ["dev.tradepost.user.created"] * 3
    shown = shop.get(shop_service, f"/v1/webhook-redeliveries/{made['id']}")
    assert shown["made"] == 3
    assert shown["finishedAt"] is not None


def test_a_disabled_endpoint_gets_what_waits_once_it_is_enabled(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """What was pending when an endpoint was disabled is neither sent nor dropped, and goes out afterwards."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    courier.deliver()
    path = f"/v1/webhook-endpoints/{endpoint['id']}"
    assert shop_service.call("PATCH", path, {"status": "DISABLED"}).status == 200
    receiver.answer = 204
    clock.move(60_000)
    shop.a_user(shop_service)
    courier.deliver()
    assert len(receiver.got) == 1
    assert shop_service.call("PATCH", path, {"status": "ENABLED"}).status == 200
    courier.deliver()
    assert [each.event["attempt"] for each in receiver.got] == [0, 1]
    assert [each["status"] for each in deliveries_of(shop_service, endpoint)] == ["DELIVERED"]


def test_a_deleted_endpoint_gets_nothing_more(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """What is pending for a deleted endpoint is not sent, and is abandoned by the housekeeping."""
    receiver = new_receiver(500)
    endpoint = an_endpoint(shop_service, receiver.url)
    shop.a_user(shop_service)
    courier.deliver()
    assert shop_service.call("DELETE", f"/v1/webhook-endpoints/{endpoint['id']}").status == 204
    clock.move(60_000)
    courier.deliver()
    assert len(receiver.got) == 1
    performer = shop_service.app.rest.performer
    housekeeping = Housekeeping(performer.database, clock, shop_service.app.metrics, 30)
    shop_service.run(housekeeping.purge())
    assert [each["status"] for each in deliveries_of(shop_service, endpoint)] == ["ABANDONED"]


def test_two_versions_of_a_type_are_both_delivered(
    engine: str, new_service: Callable[..., Service], clock: GivenClock
) -> None:
    """While order.placed and order.placed.v2 run in parallel each goes to those who name it, and both to `order.*`."""
    service = new_service(engine, clock=clock, webhook_allow_private="1")
    performer = service.app.rest.performer
    types = {**performer.emitter.types, "user.created": EventType("user.created", (1, 2))}
    performer.services = replace(performer.services, emitter=replace(performer.emitter, types=types))
    courier = Courier(service)
    old, new, both = Receiver(service), Receiver(service), Receiver(service)
    an_endpoint(service, old.url, "user.created")
    an_endpoint(service, new.url, "user.created.v2")
    an_endpoint(service, both.url, "user.*")
    shop.a_user(service)
    courier.deliver()
    kinds = [
        sorted(each.event["type"].partition("tradepost.")[2] for each in one.got) for one in (old, new, both)
    ]
    assert kinds == [["user.created"], ["user.created.v2"], ["user.created", "user.created.v2"]]
    courier.stop()
    for receiver in (old, new, both):
        receiver.stop()


def test_several_events_of_one_change_are_each_delivered_to_whom_they_concern(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver
) -> None:
    """A change that announces two events queues both, each for the endpoints that name it, once."""
    updated, everything = new_receiver(), new_receiver()
    user = shop.a_user(shop_service)
    an_endpoint(shop_service, updated.url, "user.updated", "dev.tradepost.user.updated")
    an_endpoint(shop_service, everything.url, "*", "user.*")
    changed = shop_service.call(
        "PATCH", f"/v1/users/{user['id']}", {"name": "Grace", "status": "DEACTIVATED"}
    )
    assert changed.status == 200
    courier.deliver()
    kinds = [
        sorted(each.event["type"].rpartition(".")[2] for each in one.got) for one in (updated, everything)
    ]
    assert kinds == [["updated"], ["deactivated", "updated"]]
