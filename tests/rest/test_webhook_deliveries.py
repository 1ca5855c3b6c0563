"""Webhook deliveries by request: an event once more, or a ping; and how they are found."""

from collections.abc import Callable
from typing import Any

import pytest

from tests import shop
from tests.conformance.store import sql
from tests.rest.hooks import DELIVERIES, an_endpoint, at, heard, queued
from tests.service import Service
from tradepost.domain.webhook_delivery import WebhookDelivery
from tradepost.storage.database import Writing
from tradepost.storage.record_statements import Condition, Listing, statements_of
from tradepost.storage.statement import POSTGRES, SQLITE, Statement


@pytest.fixture(scope="module")
def service(engine: str, new_service: Callable[..., Service]) -> Service:
    """A service of its own: nobody else's events are to be queued for all these endpoints."""
    return new_service(engine)


def an_event(service: Service) -> Any:
    """An event that has just happened."""
    return shop.events_of(service, f"users/{shop.a_user(service)['id']}")[0]


def row_of(service: Service, delivery: Any) -> dict[str, Any]:
    """A delivery as the database holds it."""
    names = [column.name for column in statements_of(WebhookDelivery).table.c]
    (row,) = service.rows(f"SELECT {', '.join(names)} FROM webhook_deliveries WHERE id = '{delivery['id']}'")
    return dict(zip(names, row, strict=True))


def test_an_event_is_sent_once_more(service: Service) -> None:
    """A POST of an endpoint and an event queues that event, whatever the endpoint is subscribed to."""
    endpoint, event = an_endpoint(service, "product.*"), an_event(service)
    reply = service.post(DELIVERIES, {"endpointId": endpoint["id"], "eventId": event["id"]})
    made = reply.json
    assert (reply.status, reply.headers["location"]) == (201, f"{DELIVERIES}/{made['id']}")
    assert (made["eventId"], made["eventType"]) == (event["id"], event["type"])
    assert (made["status"], made["attempts"], made["redeliveryId"]) == ("PENDING", [], None)
    assert made["nextAttemptAt"] == made["createdAt"] == made["updatedAt"]
    assert shop.get(service, f"{DELIVERIES}/{made['id']}") == made
    row = row_of(service, made)
    assert (row["later"], row["attempt"], row["lease"]) == (2, 0, None)


def test_the_same_event_is_sent_as_often_as_asked(service: Service) -> None:
    """Each request queues it again; one that is repeated under its idempotency key does not."""
    endpoint, event, key = an_endpoint(service, "product.*"), an_event(service), shop.unique()
    given = {"endpointId": endpoint["id"], "eventId": event["id"]}
    for header in ({}, {}, {"idempotency_key": key}, {"idempotency_key": key}):
        assert service.post(DELIVERIES, given, **header).status == 201
    assert heard(service, endpoint) == ["user.created"] * 3


@pytest.mark.parametrize("more", [{}, {"eventId": None}])
def test_a_ping_tries_an_endpoint(service: Service, more: dict[str, Any]) -> None:
    """An endpoint alone gets a ping: no event of the log, from the address that was asked, before what waits."""
    endpoint = an_endpoint(service, "product.*")
    made = service.made(DELIVERIES, {"endpointId": endpoint["id"], **more}, host="api.example.com")
    assert (made["eventId"], made["eventType"]) == (None, "dev.tradepost.webhook.ping")
    row = row_of(service, made)
    assert (row["source"], row["later"]) == ("http://api.example.com", 0)
    assert queued(service, endpoint) == [made]


def test_a_ping_comes_from_the_address_of_the_service(new_service: Callable[..., Service]) -> None:
    """Where the service's address and prefix are set, a ping has those."""
    service = new_service("sqlite", base_url="https://shop.example/api", event_prefix="com.example")
    made = service.made(DELIVERIES, {"endpointId": an_endpoint(service)["id"]})
    assert made["eventType"] == "com.example.webhook.ping"
    assert row_of(service, made)["source"] == "https://shop.example/api"


def test_a_deleted_or_unknown_endpoint_gets_nothing(service: Service) -> None:
    """What names no endpoint is 422 at endpointId, for an event and for a ping."""
    gone, event = an_endpoint(service), an_event(service)
    service.call("DELETE", at(gone))
    for endpoint_id in (gone["id"], "nothing", event["id"]):
        for given in ({"endpointId": endpoint_id}, {"endpointId": endpoint_id, "eventId": event["id"]}):
            reply = service.post(DELIVERIES, given)
            assert (reply.status, shop.fields_of(reply.json)) == (422, {"endpointId"})


def test_a_disabled_endpoint_has_to_be_enabled_first(service: Service) -> None:
    """A delivery to a DISABLED endpoint is 422 that says what to do; then it is taken."""
    endpoint = an_endpoint(service, status="DISABLED")
    reply = service.post(DELIVERIES, {"endpointId": endpoint["id"]})
    assert (reply.status, reply.json["errors"][0]["code"]) == (422, "disabled")
    assert "ENABLED" in reply.json["errors"][0]["message"]
    service.call("PATCH", at(endpoint), {"status": "ENABLED"})
    assert service.post(DELIVERIES, {"endpointId": endpoint["id"]}).status == 201


def test_an_event_that_is_not_there_is_422(service: Service) -> None:
    """An event that never was, or is not kept any more, is 422 at eventId; all that is wrong is told at once."""
    endpoint, event = an_endpoint(service, "product.*"), an_event(service)
    an_event(service)
    service.rows(f"DELETE FROM events WHERE id = '{event['id']}' RETURNING id")
    for event_id in (event["id"], "nothing", endpoint["id"], ""):
        reply = service.post(DELIVERIES, {"endpointId": endpoint["id"], "eventId": event_id})
        assert (reply.status, shop.fields_of(reply.json)) == (422, {"eventId"})
    reply = service.post(DELIVERIES, {"endpointId": "nothing", "eventId": "nothing", "colour": "red"})
    assert shop.fields_of(reply.json) == {"endpointId", "eventId", "colour"}
    assert queued(service, endpoint) == []


def test_what_the_service_sets_cannot_be_given(service: Service) -> None:
    """Status, type, attempts and dates of a body are ignored: a delivery that was read can be sent back."""
    endpoint, event = an_endpoint(service, "product.*"), an_event(service)
    made = service.made(DELIVERIES, {"endpointId": endpoint["id"], "eventId": event["id"]})
    again = service.made(DELIVERIES, {**made, "status": "DELIVERED", "eventType": "x", "attempts": [1]})
    assert (again["status"], again["eventType"], again["attempts"]) == ("PENDING", event["type"], [])
    assert again["id"] != made["id"]


def test_a_ping_can_be_sent_back(service: Service) -> None:
    """A ping as it was read makes a ping: its status does not make it a redelivery."""
    made = service.made(DELIVERIES, {"endpointId": an_endpoint(service, "product.*")["id"]})
    again = service.made(DELIVERIES, {**made, "status": "ABANDONED"})
    assert (again["eventId"], again["eventType"], again["status"]) == (None, made["eventType"], "PENDING")


def test_a_delivery_by_request_wakes_who_delivers(service: Service) -> None:
    """What is queued without an event, and what is enabled again, is hinted at like an event."""
    endpoint = an_endpoint(service, "product.*")
    database = service.app.rest.performer.database
    woken: list[int] = []
    wake = database.wake
    database.wake = lambda: woken.append(1)  # type: ignore[method-assign]
    try:
        service.made(DELIVERIES, {"endpointId": endpoint["id"]})
        assert len(woken) == 1
        service.call("PATCH", at(endpoint), {"status": "DISABLED"})
        assert len(woken) == 1
        service.call("PATCH", at(endpoint), {"status": "ENABLED"})
        assert len(woken) == 2
    finally:
        database.wake = wake  # type: ignore[method-assign]


# --- lists ---


def test_deliveries_are_found_by_what_they_are(service: Service) -> None:
    """The list filters by endpoint, event, type, status, redelivery and when they were made."""
    endpoint, event = an_endpoint(service, "product.*"), an_event(service)
    again = service.made(DELIVERIES, {"endpointId": endpoint["id"], "eventId": event["id"]})
    ping = service.made(DELIVERIES, {"endpointId": endpoint["id"]})
    service.rows(
        f"UPDATE webhook_deliveries SET status = 'ABANDONED', redelivery_id = 'r-{ping['id']}'"
        f" WHERE id = '{ping['id']}' RETURNING id"
    )
    mine = f"{DELIVERIES}?endpointId={endpoint['id']}"

    def found(query: str) -> list[str]:
        return [each["id"] for each in shop.walked(service, query)]

    assert found(mine) == [again["id"], ping["id"]]
    assert found(f"{mine}&sort=-createdAt&limit=1") == [ping["id"], again["id"]]
    assert again["id"] in found(f"{DELIVERIES}?eventId={event['id']}")
    assert found(f"{mine}&eventId={event['id']}") == [again["id"]]
    assert found(f"{mine}&eventType=dev.tradepost.webhook.ping") == [ping["id"]]
    assert found(f"{mine}&status=ABANDONED") == [ping["id"]]
    assert found(f"{DELIVERIES}?redeliveryId=r-{ping['id']}") == [ping["id"]]
    assert found(f"{mine}&createdAt[gt]={ping['createdAt']}") == []
    assert again["id"] in found(
        f"{mine}&createdAt[gte]={again['createdAt']}&createdAt[lte]={again['createdAt']}"
    )
    assert service.get(f"{DELIVERIES}?status=LOST").status == 400


def test_a_type_is_found_by_its_short_name(service: Service) -> None:
    """`eventType` takes a type as endpoints do: without the service's prefix too."""
    endpoint = an_endpoint(service, "user.*")
    shop.a_user(service)
    ping = service.made(DELIVERIES, {"endpointId": endpoint["id"]})
    mine = f"{DELIVERIES}?endpointId={endpoint['id']}&eventType"
    assert shop.walked(service, f"{mine}=webhook.ping") == [ping]
    assert [each["eventType"] for each in shop.walked(service, f"{mine}=user.created")] == [
        "dev.tradepost.user.created"
    ]
    assert shop.walked(service, f"{mine}=user.updated") == shop.walked(service, f"{mine}=user") == []


@pytest.mark.parametrize("column", ["endpoint_id", "status", "event_id", "redelivery_id"])
@pytest.mark.parametrize("descending", [False, True])
def test_a_list_by_one_of_them_reads_no_more_than_it_shows(
    service: Service, column: str, descending: bool
) -> None:
    """A page by endpoint, status, event or redelivery comes off an index in its order: nothing is scanned or sorted."""
    listing = Listing(descending=descending, after=True, conditions=(Condition(column, "eq", "it"),))
    statement = statements_of(WebhookDelivery).page(listing)
    assert statement.bounded
    plan = _plan(service, statement)
    assert f"webhook_deliveries_{column}_idx" in plan
    assert not any(word in plan for word in ("SCAN", "Seq Scan", "Sort", "TEMP B-TREE")), plan


def _plan(service: Service, statement: Statement) -> str:
    """How the database goes about a page; PostgreSQL as if the table were so large that nothing else pays."""
    dialect = SQLITE if service.engine == "sqlite" else POSTGRES
    values = {"it": "x", "after_id": "x", "limit": 5}
    clause = statement.clause.params(values)
    spelled = clause.compile(dialect=dialect, compile_kwargs={"literal_binds": True})

    async def explained(tx: Writing) -> list[Any]:
        if service.engine == "sqlite":
            return list(await tx.rows(sql(f"EXPLAIN QUERY PLAN {spelled}")))
        for way in ("seqscan", "bitmapscan", "sort"):
            await tx.row(sql(f"SET LOCAL enable_{way} = off"))
        return list(await tx.rows(sql(f"EXPLAIN {spelled}".replace(":", "\\:"))))

    return str(service.run(service.app.rest.performer.database.write(explained)))


def test_deliveries_are_not_changed_by_hand(service: Service) -> None:
    """A delivery is made and read, nothing else."""
    delivery = service.made(DELIVERIES, {"endpointId": an_endpoint(service)["id"]})
    for method in ("PUT", "PATCH", "DELETE"):
        assert service.call(method, f"{DELIVERIES}/{delivery['id']}", {}).status == 405


def test_attempts_are_shown_as_they_were_made(service: Service) -> None:
    """What attempts came to is shown in full, and changes the ETag."""
    delivery = service.made(DELIVERIES, {"endpointId": an_endpoint(service)["id"]})
    path = f"{DELIVERIES}/{delivery['id']}"
    tag = service.get(path).headers["etag"]
    attempts = (
        '[{"number":0,"attemptedAt":"2026-11-20T08:15:30.140Z","durationMs":12,"responseStatus":500,'
        '"error":null,"responseBody":"no","secretId":"s"}]'
    )
    service.rows(
        f"UPDATE webhook_deliveries SET attempts = '{attempts.replace(':', chr(92) + ':')}', attempt = 1"
        f" WHERE id = '{delivery['id']}' RETURNING id"
    )
    (shown,) = shop.get(service, path)["attempts"]
    assert (shown["number"], shown["responseStatus"], shown["responseBody"]) == (0, 500, "no")
    assert service.get(path, if_none_match=tag).status == 200


def test_reading_and_asking_for_deliveries_have_their_scopes(service: Service) -> None:
    """webhooks:read lists deliveries, webhooks:write asks for them."""
    reader, writer = service.new_key("webhooks:read"), service.new_key("webhooks:write")
    given = {"endpointId": an_endpoint(service)["id"]}
    assert service.post(DELIVERIES, given, key=reader).status == 403
    made = service.made(DELIVERIES, given, key=writer)
    assert service.get(f"{DELIVERIES}/{made['id']}", key=writer).status == 403
    assert service.get(f"{DELIVERIES}/{made['id']}", key=reader).status == 200
