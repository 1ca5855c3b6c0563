"""A new secret: whichever of the two a receiver has, nothing is lost; what deliveries show retires the old one."""

import asyncio
import itertools
import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import shop
from tests.given_clock import DAY, SECOND, GivenClock
from tests.service import Service
from tests.webhooks.courier import (
    HANG,
    Answer,
    Courier,
    Delivery,
    Receiver,
    a_secret,
    an_endpoint,
    deliveries_of,
    events,
)
from tradepost.clock import parse_instant
from tradepost.housekeeping import Housekeeping
from tradepost.metrics import DeliveryFigures
from tradepost.storage.database import Writing
from tradepost.webhooks import attempt
from tradepost.webhooks.attempt import AttemptOutcome, Claimed, Secret
from tradepost.webhooks.envelope import EventRow
from tradepost.webhooks.health import Health
from tradepost.webhooks.results import DeliveryResult, Results
from tradepost.webhooks.retry_schedule import RetrySchedule

YEAR = 365 * DAY
SPACE = 300  # ms between events: more than their retries are spread, so that they come one at a time
OLD, NEW, NOBODY = "old", "new", "nobody"

NewReceiver = Callable[..., Receiver]


class Rotation:
    """An endpoint whose secret was just replaced, and its receiver."""

    def __init__(self, service: Service, courier: Courier, receiver: Receiver, clock: GivenClock) -> None:
        self.service = service
        self.courier = courier
        self.receiver = receiver
        self.clock = clock
        self.endpoint = an_endpoint(service, receiver.url)
        self.old = self.endpoint["secret"]
        self.path = f"/v1/webhook-endpoints/{self.endpoint['id']}/secrets"
        [first] = shop.get(service, self.path)["items"]
        self.old_id = first["id"]
        self.new_id, self.new = "", ""

    def begin(self) -> "Rotation":
        made = a_secret(self.service, self.endpoint)
        self.new_id, self.new = made["id"], made["value"]
        return self

    def accept(self, *secrets: str) -> None:
        """From now on the receiver verifies, and knows these."""
        self.receiver.answer = knowing(*secrets)

    def event(self) -> None:
        """Something happens, and what is due is delivered."""
        shop.a_user(self.service)
        self.courier.deliver()

    def retry(self) -> bool:
        """Moves on to the next retry and makes it; whether there was one."""
        shown = [each["nextAttemptAt"] for each in deliveries_of(self.service, self.endpoint)]
        due = [parse_instant(each) for each in shown if each]
        if not due:
            return False
        self.clock.ms = min(due)
        self.courier.deliver()
        return True

    @property
    def statuses(self) -> tuple[str, str]:
        """Of the old secret and of the new one."""
        found = {each["id"]: each["status"] for each in shop.get(self.service, self.path)["items"]}
        return found[self.old_id], found[self.new_id]

    @property
    def is_over(self) -> bool:
        return self.statuses == ("RETIRED", "CURRENT")

    @property
    def kept(self) -> set[str]:
        """The secrets of the endpoint whose values the database still holds."""
        rows = self.service.rows(
            f"SELECT id FROM webhook_secrets WHERE endpoint_id = '{self.endpoint['id']}' AND sealed IS NOT NULL"
        )
        return {row[0] for row in rows}

    @property
    def requests(self) -> list[list[tuple[int, str, int | None]]]:
        """Of each delivery, the requests: the attempt, which secret signed, the answer."""
        names = {self.old_id: OLD, self.new_id: NEW}
        return [
            [(each["number"], names[each["secretId"]], each["responseStatus"]) for each in shown["attempts"]]
            for shown in deliveries_of(self.service, self.endpoint)
        ]


def knowing(*secrets: str) -> Answer:
    """A receiver that verifies: 204 for what is signed with a secret that it knows, else 401."""
    return lambda delivery: 204 if any(map(delivery.is_signed_with, secrets)) else 401


@pytest.fixture
def rotation(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> Rotation:
    """A rotation that has begun."""
    return Rotation(shop_service, courier, new_receiver(), clock).begin()


# --- receivers that know one secret, or both ---


def test_a_receiver_with_the_old_secret_loses_nothing_ever(rotation: Rotation, clock: GivenClock) -> None:
    """Every event arrives in its first attempt, of two requests; the old secret stays, however many and however long."""
    rotation.accept(rotation.old)
    for _ in range(12):
        rotation.event()
        clock.move(YEAR)
    assert rotation.requests == [[(0, NEW, 401), (0, OLD, 204)]] * 12
    assert rotation.statuses == ("RETIRING", "CURRENT")
    assert rotation.kept == {rotation.old_id, rotation.new_id}


@pytest.mark.parametrize("has_both", [False, True])
def test_three_deliveries_under_the_new_secret_retire_the_old(
    rotation: Rotation, clock: GivenClock, has_both: bool
) -> None:
    """Who accepts the new secret gets one request for each event; at the third, not before, the old value is forgotten."""
    rotation.accept(*[rotation.old] * has_both, rotation.new)
    for _ in range(2):
        rotation.event()
        assert rotation.statuses == ("RETIRING", "CURRENT")
        assert rotation.old_id in rotation.kept
    clock.move(SECOND)
    rotation.event()
    assert rotation.is_over
    assert rotation.kept == {rotation.new_id}
    retired = shop.get(rotation.service, f"{rotation.path}/{rotation.old_id}")
    assert parse_instant(retired["retiredAt"]) == clock.now_ms()
    rotation.event()
    assert rotation.requests == [[(0, NEW, 204)]] * 4


def test_three_that_were_out_together_are_three(rotation: Rotation) -> None:
    """Deliveries that are confirmed together count one by one."""
    rotation.accept(rotation.new)
    events(rotation.service, 3)
    rotation.courier.deliver()
    assert rotation.is_over


def test_what_was_claimed_before_the_rotation_confirms_nothing(
    shop_service: Service, courier: Courier, new_receiver: NewReceiver, clock: GivenClock
) -> None:
    """Deliveries that went out before there was a new secret say nothing of it, whenever they are confirmed."""
    receiver = new_receiver(HANG)
    rotation = Rotation(shop_service, courier, receiver, clock)
    events(shop_service, 4)
    courier.turn()
    receiver.wait_for(4)
    rotation.begin()
    receiver.release()
    courier.deliver()
    assert rotation.requests == [[(0, OLD, 204)]] * 4
    assert rotation.statuses == ("RETIRING", "CURRENT")


@pytest.mark.parametrize("status", [401, 500, 302])
def test_a_receiver_that_accepts_nothing_retires_nothing(
    rotation: Rotation, clock: GivenClock, status: int
) -> None:
    """Without a 2xx each attempt is two requests, and through all eight both secrets stay as they are."""
    rotation.receiver.answer = status
    rotation.event()
    for number in range(8):
        assert rotation.statuses == ("RETIRING", "CURRENT")
        assert rotation.retry() == (number < 7)
    assert rotation.requests == [[(number, secret, status) for number in range(8) for secret in (NEW, OLD)]]
    clock.move(YEAR)
    assert rotation.statuses == ("RETIRING", "CURRENT")


def test_time_alone_retires_nothing(rotation: Rotation, clock: GivenClock) -> None:
    """Years without deliveries, and all the housekeeping in them, leave the old secret as it is."""
    performer = rotation.service.app.rest.performer
    housekeeping = Housekeeping(performer.database, clock, rotation.service.app.metrics, 30)
    for _ in range(5):
        clock.move(YEAR)
        rotation.service.run(housekeeping.purge())
        rotation.courier.deliver()
        rotation.courier.release()
    assert rotation.statuses == ("RETIRING", "CURRENT")
    rotation.accept(rotation.old)
    rotation.event()
    assert rotation.requests == [[(0, NEW, 401), (0, OLD, 204)]]


def test_a_refusal_in_between_begins_the_count_anew(rotation: Rotation) -> None:
    """Who needed the old secret once has to confirm ten in a row without it, and not a single one less."""
    rotation.accept(rotation.new)
    rotation.event()
    rotation.event()
    rotation.accept(rotation.old)
    rotation.event()
    rotation.accept(rotation.new)
    for _ in range(9):
        rotation.event()
    assert rotation.statuses == ("RETIRING", "CURRENT")
    rotation.event()
    assert rotation.is_over


def test_deleting_the_old_secret_ends_the_window(rotation: Rotation) -> None:
    """After a DELETE the old value is gone, nothing is signed with it any more, and there can be a next rotation."""
    rotation.accept(rotation.old)
    assert rotation.service.post(rotation.path, {}).status == 409
    assert rotation.service.call("DELETE", f"{rotation.path}/{rotation.old_id}").status == 204
    assert rotation.is_over
    assert rotation.kept == {rotation.new_id}
    rotation.event()
    assert rotation.requests == [[(0, NEW, 401)]]
    assert rotation.service.post(rotation.path, {}).status == 201


def test_silence_is_not_a_refusal(
    engine: str, new_service: Callable[..., Service], clock: GivenClock
) -> None:
    """A timeout under the new secret says nothing of it: the attempt is not repeated under the old one."""
    service = new_service(engine, clock=clock, webhook_allow_private="1", webhook_timeout="0.2")
    courier, receiver = Courier(service), Receiver(service, HANG)
    rotation = Rotation(service, courier, receiver, clock).begin()
    rotation.event()
    assert rotation.requests == [[(0, NEW, None)]]
    assert len(receiver.got) == 1
    receiver.stop()
    rotation.retry()
    assert rotation.requests == [[(0, NEW, None), (1, NEW, None)]]
    assert rotation.statuses == ("RETIRING", "CURRENT")
    courier.stop()


# --- a fleet, some of whose machines have the new secret ---


class Fleet:
    """Machines behind one address: each request meets the one that `switched` says has the new secret or not."""

    def __init__(self, rotation: Rotation, switched: Iterator[bool]) -> None:
        self._rotation = rotation
        self._switched = switched
        self.deployed = False
        self.accepted: list[str] = []  # which secret, of each request that was
        rotation.receiver.answer = self.answer

    def answer(self, delivery: Delivery) -> int:
        known = NEW if self.deployed or next(self._switched) else OLD
        if not delivery.is_signed_with(self._rotation.new if known == NEW else self._rotation.old):
            return 401
        self.accepted.append(known)
        return 204


def is_enough(accepted: list[str]) -> bool:
    """Three in a row without the old secret; ten, if it was needed before."""
    count, needed = 0, False
    for each in accepted:
        count, needed = (count + 1, needed) if each == NEW else (0, True)
        if count >= (10 if needed else 3):
            return True
    return False


def finish(rotation: Rotation, fleet: Fleet) -> None:
    """The deploy ends; what was refused is tried again, and ten more events happen."""
    fleet.deployed = True
    for _ in range(8 * len(rotation.requests)):
        rotation.retry()
    for _ in range(10):
        rotation.event()
    assert rotation.is_over
    assert {each["status"] for each in deliveries_of(rotation.service, rotation.endpoint)} == {"DELIVERED"}


@pytest.mark.parametrize(
    ("switched", "attempts"), [((False, False, True), 1), ((True, False, False), 1), ((True, False), None)]
)
def test_a_fleet_that_takes_turns(
    rotation: Rotation, clock: GivenClock, switched: tuple[bool, ...], attempts: int | None
) -> None:
    """In turn with the old secret and with the new, machines lose no event, and while both are needed the old stays."""
    fleet = Fleet(rotation, itertools.cycle(switched))
    for _ in range(16):
        rotation.event()
        clock.move(SPACE)
        assert rotation.statuses == ("RETIRING", "CURRENT")
    if attempts:
        assert {len({number for number, _, _ in each}) for each in rotation.requests} == {attempts}
        assert set(fleet.accepted) == {OLD, NEW}
    finish(rotation, fleet)


@pytest.mark.parametrize("seed", range(3))
def test_a_fleet_at_random(rotation: Rotation, clock: GivenClock, seed: int) -> None:
    """Whichever machines requests meet, no event is lost, and the old secret goes exactly when enough did without it."""
    generator = random.Random(seed)
    fleet = Fleet(rotation, iter(lambda: generator.random() < 0.5, None))
    for _ in range(12):
        rotation.event()
        assert rotation.is_over == is_enough(fleet.accepted)
        clock.move(SPACE)
    for _ in range(4):
        rotation.retry()
        assert rotation.is_over == is_enough(fleet.accepted)
    finish(rotation, fleet)


# --- the rule alone ---


def result_of(rotated: tuple[attempt.Receiver, Secret, Secret], confirmed_by: str) -> DeliveryResult:
    """The result of an attempt, under the secret named or under none."""
    target, old, new = rotated
    event = EventRow("", "", "", "", "", "", "", None)
    outcome = AttemptOutcome(Claimed("none", "none", target, event, 0, "[]", ""))
    outcome.confirmed_by = {OLD: old.id, NEW: new.id}.get(confirmed_by)
    return DeliveryResult(outcome, None if outcome.delivered else 1)


def rotated(service: Service) -> tuple[attempt.Receiver, Secret, Secret]:
    """An endpoint with an old secret and a new one."""
    endpoint = an_endpoint(service, "https://192.0.43.8/hook")
    path = f"/v1/webhook-endpoints/{endpoint['id']}/secrets"
    old = Secret(shop.get(service, path)["items"][0]["id"], endpoint["secret"])
    made = a_secret(service, endpoint)
    new = Secret(made["id"], made["value"])
    receiver = attempt.Receiver(endpoint["id"], endpoint["url"], "application/json", None, None, new, old)
    return receiver, old, new


@given(st.lists(st.lists(st.sampled_from([NEW, NEW, NEW, OLD, NOBODY]), min_size=1, max_size=6), max_size=8))
def test_the_old_secret_goes_when_enough_in_a_row_did_without_it(
    service: Service, batches: list[list[str]]
) -> None:
    """However results are bundled: RETIRED at three in a row, at ten if it was ever needed, never else, for good."""
    endpoint = rotated(service)
    results = Results(RetrySchedule((5.0,)), Health(YEAR, 5.0 * SECOND), DeliveryFigures())
    database = service.app.rest.performer.database
    so_far: list[str] = []
    for batch in batches:
        ended = [result_of(endpoint, each) for each in batch]

        async def work(tx: Writing, ended: list[DeliveryResult] = ended) -> None:
            await results.write(tx, ended, 0)

        service.run(database.write(work))
        so_far += [each for each in batch if each != NOBODY]
        shown = shop.get(service, f"/v1/webhook-endpoints/{endpoint[0].id}/secrets/{endpoint[1].id}")
        assert shown["status"] == ("RETIRED" if is_enough(so_far) else "RETIRING")


def test_workers_write_results_side_by_side(service: Service) -> None:
    """Two workers that write results of the same endpoints, in whatever order, never wait for one another in a ring."""
    endpoints = [rotated(service) for _ in range(2)]
    results = Results(RetrySchedule((5.0,)), Health(YEAR, 5.0 * SECOND), DeliveryFigures())
    database = service.app.rest.performer.database
    runs = 0

    async def write(ended: list[DeliveryResult]) -> None:
        async def work(tx: Writing) -> None:
            nonlocal runs
            runs += 1  # again, if it had to be broken off
            await results.write(tx, ended, 0)

        await database.write(work)

    async def together() -> None:
        for secret in [OLD, NOBODY] * 4:
            ended = [result_of(each, secret) for each in endpoints]
            await asyncio.gather(write(ended), write(ended[::-1]))

    service.run(together())
    assert runs == 16
