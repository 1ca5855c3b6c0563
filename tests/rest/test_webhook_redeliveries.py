"""Webhook redeliveries: the events of a stretch of time once more, made piece by piece."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import shop
from tests.given_clock import DAY, SECOND, GivenClock
from tests.rest.hooks import DELIVERIES, REDELIVERIES, an_endpoint, at, queued
from tests.service import Service
from tradepost.actions.change import Change
from tradepost.actions.webhook_redeliveries import Piece, expand
from tradepost.cli.store import OPERATOR
from tradepost.clock import instant
from tradepost.versions.changes import Rename, Version


@pytest.fixture(scope="module")
def clock() -> GivenClock:
    return GivenClock()


@pytest.fixture(scope="module")
def service(engine: str, new_service: Callable[..., Service], clock: GivenClock) -> Service:
    """A service whose clock stands still: what happened when is for the tests to say."""
    return new_service(engine, clock=clock)


SETTLED = 15 * SECOND  # until nobody can commit any more what happened before


def piece(service: Service, limit: int = 100, after: str = "") -> Piece | None:
    """Makes one piece of the first redelivery behind an id that is not finished."""

    async def action(change: Change) -> Piece | None:
        return await expand(change, after, limit)

    performer = service.app.rest.performer
    return service.run(performer.perform(OPERATOR, None, action, source="")).result


def finish(service: Service, limit: int = 100) -> int:
    """Makes all there is to be made, once it is settled; in how many pieces."""
    given = service.app.rest.performer.clock
    assert isinstance(given, GivenClock)
    given.move(SETTLED)
    pieces = 0
    while piece(service, limit):
        pieces += 1
        assert pieces < shop.MANY
    return pieces


def asked(service: Service, endpoint: Any, since: str, **more: Any) -> Any:
    """A redelivery of what happened since an instant."""
    return service.made(REDELIVERIES, {"endpointId": endpoint["id"], "from": since, **more})


def made_by(service: Service, redelivery: Any) -> list[str]:
    """The subjects of the events that a redelivery sends again, in the order they were queued."""
    shown = shop.walked(service, f"{DELIVERIES}?redeliveryId={redelivery['id']}")
    return [shop.get(service, f"/v1/events/{each['eventId']}")["subject"] for each in shown]


def shown(service: Service, redelivery: Any) -> Any:
    return shop.get(service, f"{REDELIVERIES}/{redelivery['id']}")


@pytest.fixture
def moment(service: Service, clock: GivenClock) -> str:
    """An instant before which everything of other tests happened."""
    finish(service)
    clock.move(SECOND)
    return instant(clock.now_ms())


# --- asking ---


def test_a_redelivery_says_how_far_it_is(service: Service, clock: GivenClock, moment: str) -> None:
    """A POST answers at once; `made` counts up, and `finishedAt` says when all deliveries were made."""
    users = [shop.a_user(service) for _ in range(5)]
    clock.move(1)
    endpoint = an_endpoint(service, "user.*")
    reply = service.post(REDELIVERIES, {"endpointId": endpoint["id"], "from": moment})
    made = reply.json
    assert (reply.status, reply.headers["location"]) == (201, f"{REDELIVERIES}/{made['id']}")
    assert (made["from"], made["to"], made["createdAt"]) == (
        moment,
        instant(clock.now_ms()),
        instant(clock.now_ms()),
    )
    assert (made["eventTypes"], made["status"], made["made"], made["finishedAt"]) == (None, None, 0, None)
    assert shown(service, made) == made
    tag = service.get(f"{REDELIVERIES}/{made['id']}").headers["etag"]
    clock.move(SETTLED)
    assert piece(service, 3)
    assert shown(service, made) == made | {"made": 3}
    assert service.get(f"{REDELIVERIES}/{made['id']}").headers["etag"] != tag
    assert finish(service, 3) == 1
    assert shown(service, made) == made | {"made": 5, "finishedAt": instant(clock.now_ms())}
    assert made_by(service, made) == [f"users/{user['id']}" for user in users]
    assert not piece(service)


def test_a_delivery_with_from_is_a_redelivery(service: Service, moment: str, clock: GivenClock) -> None:
    """A POST to the deliveries whose body has `from` is answered as one to the redeliveries, errors included."""
    endpoint = an_endpoint(service)
    clock.move(1)
    given = {"endpointId": endpoint["id"], "from": moment, "eventTypes": ["order.*"], "status": "ABANDONED"}
    key = shop.unique()
    reply = service.post(DELIVERIES, given, idempotency_key=key)
    assert (reply.status, reply.headers["location"]) == (201, f"{REDELIVERIES}/{reply.json['id']}")
    assert shown(service, reply.json) == reply.json
    assert service.post(DELIVERIES, given, idempotency_key=key).body == reply.body
    bad = {**given, "from": "yesterday", "eventId": "x", "endpointId": "x", "eventTypes": ["x"]}
    here, there = service.post(DELIVERIES, bad), service.post(REDELIVERIES, bad)
    assert here.json["errors"] == there.json["errors"]
    assert shop.fields_of(here.json) == {"from", "eventId", "endpointId", "eventTypes[0]"}
    finish(service)


@pytest.mark.parametrize(
    "given",
    [
        {"status": "ABANDONED"},
        {"eventTypes": ["order.*"]},
        {"to": "2026-01-01"},
        {"to": None, "eventTypes": None, "status": None},
        {"eventTypes": ["order.*"], "status": "ABANDONED", "id": "d"},
    ],
)
def test_what_only_a_redelivery_can_say_is_one(service: Service, given: dict[str, Any]) -> None:
    """A POST to the deliveries that says which events, and not since when, is told to; it sends no ping."""
    endpoint = an_endpoint(service)
    reply = service.post(DELIVERIES, {"endpointId": endpoint["id"], **given})
    assert [(each["field"], each["message"]) for each in reply.json["errors"]] == [("from", "is required")]
    assert (reply.status, queued(service, endpoint)) == (422, [])


@pytest.mark.parametrize("name", ["to", "eventTypes"])
def test_a_delivery_of_an_event_takes_nothing_of_a_redelivery(service: Service, name: str) -> None:
    """With an `eventId` beside what only a redelivery can say, that one is refused as no member."""
    endpoint = an_endpoint(service)
    reply = service.post(DELIVERIES, {"endpointId": endpoint["id"], "eventId": "e", name: None})
    assert (reply.status, shop.fields_of(reply.json)) == (422, {"eventId", "from"})


@pytest.mark.parametrize(
    "since", ["", "yesterday", "2026-02-30", "2026-11-20T08:00:00", "1e9", "9999-12-31", "\0"]
)
def test_an_instant_is_rfc_3339(service: Service, since: str) -> None:
    """What is no instant is 422 by its name."""
    endpoint = an_endpoint(service, "webhook.ping")
    for bad in ({"from": since}, {"from": "2020-01-01", "to": since}, {"from": since, "to": since}):
        reply = service.post(REDELIVERIES, {"endpointId": endpoint["id"], **bad})
        named = {name for name, value in bad.items() if value == since}
        assert (reply.status, shop.fields_of(reply.json)) == (422, named)


def test_instants_are_kept_in_one_form(service: Service) -> None:
    """An offset, a bare date and missing milliseconds become UTC with milliseconds."""
    endpoint = an_endpoint(service, "webhook.ping")
    made = asked(service, endpoint, "2026-01-01", to="2026-01-02T02:00:00+02:00")
    assert (made["from"], made["to"]) == ("2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z")
    finish(service)


def test_a_stretch_ends_after_it_begins(service: Service, clock: GivenClock) -> None:
    """`to` at or before `from`, and a `from` that is not past, are 422; a `to` to come is now."""
    endpoint, now = an_endpoint(service, "webhook.ping"), instant(clock.now_ms())
    for since, to, wrong in (
        ("2026-01-02", "2026-01-01", {"to"}),
        ("2026-01-02", "2026-01-02", {"to"}),
        (now, None, {"from"}),
        ("2027-01-01", None, {"from"}),
        ("2027-01-01", "2028-01-01", {"from"}),
        ("2027-01-01", "2026-01-01", {"to"}),
    ):
        reply = service.post(REDELIVERIES, {"endpointId": endpoint["id"], "from": since, "to": to})
        assert (reply.status, shop.fields_of(reply.json)) == (422, wrong), (since, to)
    assert asked(service, endpoint, "2026-01-01", to="2028-01-01")["to"] == now
    finish(service)


def test_the_endpoint_is_judged_as_for_a_delivery(service: Service) -> None:
    """An endpoint that is unknown, deleted or DISABLED is 422; types are judged as at endpoints."""
    gone, disabled = an_endpoint(service), an_endpoint(service, status="DISABLED")
    service.call("DELETE", at(gone))
    for each in (gone, disabled, {"id": "nothing"}):
        reply = service.post(
            REDELIVERIES, {"endpointId": each["id"], "from": "2026-01-01", "eventTypes": ["x"]}
        )
        assert (reply.status, shop.fields_of(reply.json)) == (422, {"endpointId", "eventTypes[0]"})
    for status in ("PENDING", "x", 1):
        reply = service.post(
            REDELIVERIES, {"endpointId": disabled["id"], "from": "2026-01-01", "status": status}
        )
        assert "status" in shop.fields_of(reply.json)


def test_a_version_may_call_its_members_otherwise(new_service: Callable[..., Service]) -> None:
    """Where a version renames `from`, the member of that name makes a redelivery, and is named in what is refused."""
    renamed = (Rename("webhook_redelivery", "from_", "since"), Rename("webhook_redelivery", "to", "until"))
    versions = (Version(1, "2026-01-01"), Version(2, "2027-05-01", renamed))
    service = new_service("sqlite", versions=versions)
    asking = {"endpointId": an_endpoint(service)["id"], "since": "2020-01-01"}
    assert service.made("/v2/webhook-deliveries", asking)["since"] == "2020-01-01T00:00:00.000Z"
    reply = service.post("/v2/webhook-deliveries", {**asking, "until": "2019-01-01"})
    assert shop.fields_of(reply.json) == {"until"}
    reply = service.post("/v2/webhook-deliveries", {**asking, "from": "2020-01-01"})
    assert shop.fields_of(reply.json) == {"from"}
    assert shop.fields_of(service.post(DELIVERIES, asking).json) == {"since"}


# --- what is made ---


def test_the_stretch_is_from_its_beginning_to_before_its_end(
    service: Service, clock: GivenClock, moment: str
) -> None:
    """An event at `from` is in, one at `to` is out, to the millisecond."""
    endpoint = an_endpoint(service, "user.*")
    subjects = []
    for _ in range(5):
        subjects.append(f"users/{shop.a_user(service)['id']}")
        clock.move(1)
    first = clock.now_ms() - 5
    made = asked(service, endpoint, instant(first + 1), to=instant(first + 4))
    finish(service)
    assert made_by(service, made) == subjects[1:4]
    assert shown(service, made)["made"] == 3


def test_types_are_those_asked_for_or_the_endpoints_own(
    service: Service, clock: GivenClock, moment: str
) -> None:
    """With `eventTypes` those are sent, whatever the endpoint hears; without, what the endpoint hears by then."""
    endpoint = an_endpoint(service, "product.*")
    order = shop.an_order(service)
    clock.move(1)
    named = asked(service, endpoint, moment, eventTypes=["dev.tradepost.order.placed", "order.*"])
    own = asked(service, endpoint, moment)
    finish(service)
    assert made_by(service, named) == [f"orders/{order['id']}"]
    assert made_by(service, own) == [f"products/{order['lineItems'][0]['productId']}"]
    service.call("PATCH", at(endpoint), {"eventTypes": ["order.*"]})
    own = asked(service, endpoint, moment)
    finish(service)
    assert made_by(service, own) == [f"orders/{order['id']}"]


@pytest.mark.parametrize("status", ["ABANDONED", "DELIVERED"])
def test_only_what_ended_so(service: Service, clock: GivenClock, moment: str, status: str) -> None:
    """With `status` only events are sent that had a delivery to this endpoint that ended so."""
    endpoint, other = an_endpoint(service, "user.*"), an_endpoint(service, "user.*")
    users = [shop.a_user(service) for _ in range(4)]
    clock.move(1)
    first, _, third, _ = queued(service, endpoint)
    for delivery, ended in ((first, "ABANDONED"), (third, "DELIVERED"), (queued(service, other)[1], status)):
        service.rows(
            f"UPDATE webhook_deliveries SET status = '{ended}' WHERE id = '{delivery['id']}' RETURNING id"
        )
    made = asked(service, endpoint, moment, status=status)
    finish(service, 1)
    wanted = users[0] if status == "ABANDONED" else users[2]
    assert made_by(service, made) == [f"users/{wanted['id']}"]


@pytest.mark.parametrize("since", ["DELIVERED", "PENDING"])
def test_what_was_abandoned_is_sent_again_once(
    service: Service, clock: GivenClock, moment: str, since: str
) -> None:
    """An abandoned event that was delivered since, or is about to be, is not what an endpoint did not get."""
    endpoint = an_endpoint(service, "user.*")
    shop.a_user(service)
    clock.move(1)
    where = f"WHERE endpoint_id = '{endpoint['id']}' RETURNING id"
    service.rows(f"UPDATE webhook_deliveries SET status = 'ABANDONED', next_attempt_at = NULL {where}")
    first, second = (asked(service, endpoint, moment, status="ABANDONED") for _ in range(2))
    finish(service)
    assert (shown(service, first)["made"], shown(service, second)["made"]) == (1, 0)
    service.rows(
        f"UPDATE webhook_deliveries SET status = '{since}' {where.replace('RETURNING', 'AND later = 2 RETURNING')}"
    )
    third = asked(service, endpoint, moment, status="ABANDONED")
    finish(service)
    assert shown(service, third)["made"] == 0


def test_what_is_committed_late_is_not_skipped(new_service: Callable[..., Service]) -> None:
    """On PostgreSQL an event of the stretch whose transaction ends after the redelivery was asked for is sent too."""
    clock = GivenClock()
    service = new_service("postgresql", clock=clock)
    endpoint = an_endpoint(service, "user.created")
    began = instant(clock.now_ms())
    shop.a_user(service)
    clock.move(SECOND)
    made = asked(service, endpoint, began)
    assert piece(service) == Piece(made["id"], moved=False)
    service.rows(
        "INSERT INTO events (id, source, type, subject, time, dataschema, data)"
        " SELECT substr(id, 1, 35) || 'x', source, type, subject, time, dataschema, data FROM events"
        f" WHERE id = '{queued(service, endpoint)[0]['eventId']}' RETURNING id"
    )
    clock.move(SETTLED - SECOND + 1)
    assert piece(service) == Piece(made["id"], moved=True)
    assert shown(service, made)["finishedAt"] is None
    clock.move(1 + SECOND)
    finish(service)
    assert shown(service, made)["made"] == 2


def test_redeliveries_take_turns(service: Service, clock: GivenClock, moment: str) -> None:
    """A long one does not keep others waiting: behind its piece comes one of the next."""
    endpoint, other = an_endpoint(service, "user.*"), an_endpoint(service, "user.*")
    for _ in range(4):
        shop.a_user(service)
    clock.move(1)
    long, short = asked(service, endpoint, moment), asked(service, other, moment)
    clock.move(SETTLED)
    assert piece(service, 2) == Piece(long["id"], moved=True)
    assert piece(service, 2, after=long["id"]) == Piece(short["id"], moved=True)
    assert piece(service, 2, after=short["id"]) is None
    finish(service)


def test_an_endpoint_has_ten_redeliveries_at_a_time(service: Service, moment: str) -> None:
    """The eleventh is 409 until one is finished; other endpoints have theirs."""
    endpoint, other = an_endpoint(service, "webhook.ping"), an_endpoint(service, "webhook.ping")
    for _ in range(10):
        asked(service, endpoint, "2026-01-01")
    wanted = {"endpointId": endpoint["id"], "from": "2026-01-01"}
    assert service.post(REDELIVERIES, wanted).status == 409
    asked(service, other, "2026-01-01")
    finish(service)
    asked(service, endpoint, "2026-01-01")
    finish(service)


def test_what_is_made_gives_way(service: Service, clock: GivenClock, moment: str) -> None:
    """Deliveries of a redelivery are due at once, behind what happens meanwhile, and name the redelivery."""
    endpoint = an_endpoint(service, "user.*")
    shop.a_user(service)
    clock.move(1)
    made = asked(service, endpoint, moment)
    clock.move(SECOND)
    finish(service)
    (again,) = shop.walked(service, f"{DELIVERIES}?redeliveryId={made['id']}")
    assert (again["status"], again["nextAttemptAt"]) == ("PENDING", instant(clock.now_ms()))
    rows = service.rows(
        f"SELECT later FROM webhook_deliveries WHERE endpoint_id = '{endpoint['id']}' ORDER BY id"
    )
    assert rows == [(0,), (2,)]


def test_both_versions_of_a_type_are_found(service: Service, clock: GivenClock, moment: str) -> None:
    """An event of a second schema version, whose id is that of the first and a suffix, is in the same stretch."""
    endpoint = an_endpoint(service, "user.created")
    shop.a_user(service)
    service.rows(
        "INSERT INTO events (id, source, type, subject, time, dataschema, data)"
        " SELECT id || '-v2', source, type || '.v2', subject, time, dataschema, data FROM events"
        f" WHERE id = '{queued(service, endpoint)[0]['eventId']}' RETURNING id"
    )
    clock.move(1)
    made = asked(service, endpoint, moment, eventTypes=["user.*"])
    finish(service, 1)
    assert shown(service, made)["made"] == 2


def test_nothing_is_made_for_an_endpoint_that_is_gone(
    service: Service, clock: GivenClock, moment: str
) -> None:
    """A redelivery to an endpoint that was deleted meanwhile ends without more deliveries."""
    endpoint = an_endpoint(service, "user.*")
    for _ in range(3):
        shop.a_user(service)
    clock.move(1)
    made = asked(service, endpoint, moment)
    clock.move(SETTLED)
    assert piece(service, 1)
    service.call("DELETE", at(endpoint))
    assert finish(service, 1) == 1
    after = shown(service, made)
    assert (after["made"], after["finishedAt"] is None) == (1, False)


def test_a_piece_that_fails_leaves_nothing(
    service: Service, clock: GivenClock, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piece is made whole or not at all: after a failure the same events are looked at again."""
    endpoint = an_endpoint(service, "user.*")
    for _ in range(3):
        shop.a_user(service)
    clock.move(1)
    made = asked(service, endpoint, moment)
    clock.move(SETTLED)

    async def action(change: Change) -> None:
        assert await expand(change, "", 2) == Piece(made["id"], moved=True)
        raise ZeroDivisionError

    performer = service.app.rest.performer
    with pytest.raises(ZeroDivisionError):
        service.run(performer.perform(OPERATOR, None, action, source=""))
    assert (shown(service, made), made_by(service, made)) == (made, [])
    finish(service)
    assert (shown(service, made)["made"], len(made_by(service, made))) == (3, 3)


def test_pieces_made_at_once_make_each_delivery_once(
    engine: str, new_service: Callable[..., Service]
) -> None:
    """However many workers make pieces at the same time, each event is sent again once."""
    clock = GivenClock()
    service = new_service(engine, clock=clock)
    endpoint = an_endpoint(service, "user.*")
    users = [shop.a_user(service) for _ in range(20)]
    clock.move(1)
    redeliveries = [asked(service, endpoint, instant(clock.now_ms() - DAY)) for _ in range(3)]
    clock.move(SETTLED)
    performer = service.app.rest.performer

    async def action(change: Change) -> None:
        await expand(change, "", 3)

    async def many() -> None:
        for _ in range(12):
            works = [performer.perform(OPERATOR, None, action, source="") for _ in range(5)]
            await asyncio.gather(*works)

    service.run(many())
    finish(service)
    for each in redeliveries:
        assert made_by(service, each) == [f"users/{user['id']}" for user in users]
        assert shown(service, each)["made"] == 20


@settings(max_examples=15)
@given(
    limit=st.integers(1, 9),
    happened=st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["user", "product"])), max_size=12),
    window=st.tuples(st.integers(0, 20), st.integers(1, 20)),
)
def test_any_stretch_in_pieces_of_any_size_is_what_happened_in_it(
    service: Service, clock: GivenClock, limit: int, happened: list[tuple[int, str]], window: tuple[int, int]
) -> None:
    """Whatever the pieces, each event of the stretch and of the types asked for is made exactly once, in order."""
    finish(service)
    clock.move(SECOND)
    begin, endpoint = clock.now_ms(), an_endpoint(service, "webhook.ping")
    events = []
    for passed, kind in happened:
        clock.move(passed)
        made = shop.a_user(service) if kind == "user" else shop.a_product(service)
        events.append((clock.now_ms() - begin, f"{kind}s/{made['id']}"))
    clock.move(SECOND)
    since, to = window[0], window[0] + window[1]
    redelivery = asked(
        service, endpoint, instant(begin + since), to=instant(begin + to), eventTypes=["user.*"]
    )
    finish(service, limit)
    wanted = [subject for ms, subject in events if since <= ms < to and subject.startswith("users")]
    assert made_by(service, redelivery) == wanted
    assert shown(service, redelivery)["made"] == len(wanted)
