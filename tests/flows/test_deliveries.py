"""Deliveries by the real processes over real sockets, through kill -9 and SIGTERM."""

import http.client
import os
import random
import signal
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from tests.flows.process import Child, Process, serving
from tests.flows.receiver import WAIT, Arrival, Receiver
from tradepost.webhooks import verify

KILLS = int(os.environ.get("TRADEPOST_TEST_KILLS", "6"))
PATHS = ("/one", "/two", "/three")
SLOTS = 4
AHEAD = 60  # events that are written and not yet everywhere: load, but no backlog that takes minutes
SETTINGS: dict[str, Any] = {
    "webhook_allow_private": "1",
    "webhook_schedule": "0.1,0.1,0.1,0.1,0.1,0.1,0.1",
    "webhook_timeout": "20",
}


class Shop:
    """A process that serves, where users are made: each is an event for the endpoints of a test."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.made: list[str] = []  # the subjects of the events
        self._endpoints: list[str] = []
        self._connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=20)

    def endpoint(self, url: str) -> Any:
        body = {"url": url, "eventTypes": ["user.created"]}
        status, made = self.process.call("POST", "/v1/webhook-endpoints", body)
        assert status == 201, made
        self._endpoints.append(made["id"])
        return made

    def events(self, count: int = 1) -> None:
        for _ in range(count):
            body = {"name": "Ada", "email": f"{uuid.uuid4().hex}@shop.example"}
            status, user = self.process.call_on(self._connection, "POST", "/v1/users", body)
            assert status == 201, user
            self.made.append(f"users/{user['id']}")

    def logged(self) -> dict[str, str]:
        """Of the events of this test, subject and id, as the log has them.

        PostgreSQL's log shows an event once no transaction that began before it is still open.
        """
        deadline = time.monotonic() + WAIT
        found: dict[str, str] = {}
        while not found.keys() >= set(self.made) and time.monotonic() < deadline:
            for each in self._listed("/v1/events?type=dev.tradepost.user.created"):
                found[each["subject"]] = each["id"]
        return {subject: found[subject] for subject in self.made}

    def all_are_delivered(self) -> bool:
        """Whether each delivery to the endpoints of this test comes to be delivered, in time."""
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline:
            statuses = {
                each["status"]
                for endpoint in self._endpoints
                for each in self._listed(f"/v1/webhook-deliveries?endpointId={endpoint}")
            }
            if "PENDING" not in statuses:
                return statuses == {"DELIVERED"}
        return False

    def close(self) -> None:
        """Nobody is told of what later tests do."""
        self._connection.close()
        for each in self._endpoints:
            self.process.call("DELETE", f"/v1/webhook-endpoints/{each}")

    def _listed(self, path: str) -> Iterator[Any]:
        cursor: str | None = ""
        while cursor is not None:
            status, page = self.process.call("GET", f"{path}&limit=200{cursor}")
            assert status == 200, page
            yield from page["items"]
            cursor = f"&cursor={page['next']}" if page["next"] else None


@contextmanager
def worker(shop: Shop) -> Iterator[Child]:
    """A `tradepost worker` on the database of a shop; killed in the end if it is still there."""
    child = Child(shop.process.environment, "worker")
    try:
        yield child
    finally:
        child.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def served(engine: str, new_database: Callable[[str], str]) -> Iterator[Process]:
    """A process that serves and leaves deliveries to workers."""
    with serving(new_database(engine), "--no-deliveries", **SETTINGS) as process:
        yield process


@pytest.fixture
def shop(served: Process) -> Iterator[Shop]:
    made = Shop(served)
    yield made
    made.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


# --- `tradepost serve` ---


def test_serve_delivers(engine: str, new_database: Callable[[str], str]) -> None:
    """`tradepost serve` delivers signed events by itself, tries again what is refused, and while one receiver hangs
    all arrives at another, of which never more than four are open."""
    first_refused = Receiver(lambda arrival: 204 if arrival.event["attempt"] else 503)
    with first_refused as receiver, serving(new_database(engine), **SETTINGS) as process:
        shop = Shop(process)
        receiver.hanging.add("/hanging")
        shop.endpoint(receiver.url("/hanging"))
        endpoint = shop.endpoint(receiver.url("/healthy"))
        shop.events(30)
        ids = list(shop.logged().values())
        assert receiver.wait(lambda: len(receiver.at("/healthy")) == 60)
        assert 0 < len(receiver.at("/hanging")) <= SLOTS
        for arrival in receiver.got:
            if arrival.path == "/healthy":
                verify(arrival.body, arrival.headers["x-signature-256"], endpoint["secret"])
        receiver.release()
        assert shop.all_are_delivered()
        shop.close()
    expected = sorted((path, each, n) for path in ("/hanging", "/healthy") for each in ids for n in (0, 1))
    assert sorted(each.key for each in receiver.got) == expected


# --- `tradepost worker` ---


def test_two_workers_deliver_each_event_once(shop: Shop, receiver: Receiver) -> None:
    """Two workers beside a process that serves without them deliver everything to everybody, nothing twice."""
    for path in PATHS:
        shop.endpoint(receiver.url(path))
    with worker(shop) as one, worker(shop) as two:
        for each in (one, two):
            each.hear("is delivering webhooks")
        shop.events(100)
        assert shop.all_are_delivered()
    expected = sorted((path, each, 0) for path in PATHS for each in shop.logged().values())
    assert sorted(each.key for each in receiver.got) == expected


def test_sigterm_leaves_nothing_behind(shop: Shop, receiver: Receiver) -> None:
    """A worker that is asked to end finishes what is out and exits with 0; the next one delivers the rest, none twice."""
    shop.endpoint(receiver.url("/slow"))
    receiver.hanging.add("/slow")
    with worker(shop) as first:
        shop.events(10)
        assert receiver.wait(lambda: len(receiver.got) == SLOTS)
        os.kill(first.pid, signal.SIGTERM)
        receiver.release()
        assert first.end() == 0
    with worker(shop):
        assert shop.all_are_delivered()
    assert sorted(each.key for each in receiver.got) == sorted(
        ("/slow", each, 0) for each in shop.logged().values()
    )


# --- kill -9 ---


NOTICED = 0.25  # seconds: a busy machine has this process wait for its turn


class Kill(NamedTuple):
    """When a worker was killed: just before and just after (monotonic seconds)."""

    before: float
    after: float


def kill(child: Child) -> Kill:
    before = time.monotonic()
    child.end(signal.SIGKILL)
    return Kill(before, time.monotonic())


def write(shop: Shop, receiver: Receiver, stop: threading.Event) -> None:
    """Events without end, but not too far ahead of those who deliver them."""
    while not stop.is_set():
        shop.events()
        receiver.wait(lambda: stop.is_set() or len(receiver.got) > len(PATHS) * (len(shop.made) - AHEAD))


def test_nothing_is_lost_by_kill_9(shop: Shop, receiver: Receiver) -> None:
    """However often a worker is killed under load: each event written arrives at each endpoint, and nothing else;
    none is abandoned; and what came twice was out when a worker was killed."""
    moments = random.Random(9)
    for path in PATHS:
        shop.endpoint(receiver.url(path))
    stop = threading.Event()
    writer = threading.Thread(target=write, args=(shop, receiver, stop))
    kills: list[Kill] = []
    with ExitStack() as life:
        writer.start()
        try:
            for _ in range(KILLS):
                child = life.enter_context(worker(shop))
                enough = len(receiver.got) + moments.randint(1, 120)
                assert receiver.wait(partial(has_got, receiver, enough))
                kills.append(kill(child))
        finally:
            stop.set()
            receiver.nudge()
            writer.join(WAIT)
        life.enter_context(worker(shop))
        assert shop.all_are_delivered()
    ids = set(shop.logged().values())
    assert len(ids) == len(shop.made)
    for path in PATHS:
        assert set(receiver.at(path)) == ids
    assert unexplained(receiver.got, kills) == []
    assert len(receiver.got) - len(PATHS) * len(ids) <= KILLS * len(PATHS) * SLOTS


def has_got(receiver: Receiver, count: int) -> bool:
    return len(receiver.got) >= count


def unexplained(got: list[Arrival], kills: list[Kill]) -> list[tuple[float, float]]:
    """When the same attempt arrived twice without a worker killed in between, from the last kill before.

    An arrival is noticed by a thread of this process, which may be a moment behind the kill that it came before.
    """
    arrivals: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for each in got:
        arrivals[each.key].append(each.at)
    pairs = [pair for times in arrivals.values() for pair in pairwise(times)]
    return [
        (one - near, other - near)
        for one, other in pairs
        if not any(one < each.after + NOTICED and each.before < other for each in kills)
        for near in [max((each.after for each in kills if each.after < other), default=0.0)]
    ]
