"""Which delivery is next: the scheduler alone, on a model of endpoints, without a database."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle, islice

from hypothesis import given
from hypothesis import strategies as st

from tradepost.clock import instant
from tradepost.domain.webhook_delivery import RETRY_SLOTS, SLOTS
from tradepost.webhooks.failure_throttle import FAILING_AFTER_MS, STEP_MS
from tradepost.webhooks.fairness import Candidate, EndpointQueues, FairScheduler

NOW_MS = 10**12
FIRST, RETRY, REDELIVERY = 0, 1, 2
LONG_AGO = instant(NOW_MS - 10 * FAILING_AFTER_MS)
WORKS = ""


@dataclass(frozen=True)
class InFlight:
    """A delivery that started, and what the scheduler said of its endpoint."""

    endpoint_id: str
    queue: int
    failing: bool


@dataclass
class World:
    """Endpoints with endless queues, and a worker that does what its scheduler says."""

    capacity: int
    page_size: int
    failing: dict[str, bool]  # by endpoint
    queues: tuple[int, ...] = (FIRST,)
    now_ms: int = NOW_MS
    in_flight: list[InFlight] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scheduler = FairScheduler(self.capacity, self.page_size)

    def turn(self) -> list[str]:
        """The endpoints of the deliveries that start."""
        if self.scheduler.is_full:
            return []
        following = [each for each in sorted(self.failing) if each > self.scheduler.resume_after]
        page = [self._queues(each) for each in following[: self.page_size]]
        due = self.scheduler.look(page, {}, self.now_ms)
        pick = self.scheduler.pick([each for endpoint_id in due for each in self.candidates(endpoint_id)])
        self.scheduler.claimed(pick)
        for each in pick.deliveries:
            failing_since = LONG_AGO if self.failing[each.endpoint_id] else WORKS
            failing = self.scheduler.started(each.endpoint_id, failing_since, self.now_ms)
            self.in_flight.append(InFlight(each.endpoint_id, each.queue, failing))
        return [each.endpoint_id for each in pick.deliveries]

    def turns(self) -> list[str]:
        """The same of all turns until there are no more pages, or no capacity."""
        started = self.turn()
        while self.scheduler.resume_after and not self.scheduler.is_full:
            started += self.turn()
        return started

    def end(self, ended: list[InFlight]) -> None:
        for each in ended:
            self.in_flight.remove(each)
            self.scheduler.ended(each.endpoint_id, failing=each.failing, delivered=False)

    def count(self, endpoint_id: str, *queues: int) -> int:
        """How many deliveries of an endpoint are in flight."""
        return sum(each.endpoint_id == endpoint_id and each.queue in queues for each in self.in_flight)

    def candidates(self, endpoint_id: str) -> Iterator[Candidate]:
        """What waits first in the queues of an endpoint."""
        counts = self.count(endpoint_id, FIRST), self.count(endpoint_id, RETRY, REDELIVERY)
        for queue in self.queues:
            for number in range(SLOTS):
                yield Candidate(f"{endpoint_id}/{queue}/{number}", endpoint_id, queue, *counts)

    def _queues(self, endpoint_id: str) -> EndpointQueues:
        first, retry, redelivery = (
            LONG_AGO if queue in self.queues else None for queue in (FIRST, RETRY, REDELIVERY)
        )
        in_flight = self.count(endpoint_id, FIRST, RETRY, REDELIVERY)
        return EndpointQueues(
            endpoint_id, first, retry, redelivery, in_flight, LONG_AGO if self.failing[endpoint_id] else WORKS
        )


ANY = st.booleans()
NONE = st.just(False)


@st.composite
def worlds(draw: st.DrawFn, *, failing: st.SearchStrategy[bool] = ANY) -> World:
    """A world of some endpoints that work and some that fail, with queues, pages and a capacity of any size."""
    numbers = range(draw(st.integers(1, 20)))
    capacity, page_size = draw(st.integers(2 * SLOTS, 8 * SLOTS)), draw(st.integers(1, 8))
    queues = draw(st.sets(st.sampled_from([FIRST, RETRY, REDELIVERY]), min_size=1))
    endpoints = {f"{number:02}": draw(failing) for number in numbers}
    return World(capacity, page_size, endpoints, tuple(sorted(queues)))


def some(data: st.DataObject, in_flight: list[InFlight]) -> list[InFlight]:
    """Any of what is in flight."""
    ends = data.draw(st.lists(st.booleans(), min_size=len(in_flight), max_size=len(in_flight)))
    return [each for each, does_end in zip(in_flight, ends, strict=True) if does_end]


# --- capacity ---


@given(worlds(), st.data())
def test_no_limit_is_ever_exceeded(world: World, data: st.DataObject) -> None:
    """Whatever ends when, a process keeps to its capacity, failing endpoints to half of it, each endpoint to its slots."""
    for _ in range(10):
        world.turns()
        assert len(world.in_flight) <= world.capacity
        assert sum(each.failing for each in world.in_flight) <= world.capacity // 2
        for each in world.failing:
            assert world.count(each, FIRST, RETRY, REDELIVERY) <= SLOTS
            assert world.count(each, RETRY, REDELIVERY) <= RETRY_SLOTS
        world.end(some(data, world.in_flight))
        world.now_ms += STEP_MS


@given(worlds(failing=NONE))
def test_no_capacity_is_left_unused(world: World) -> None:
    """While something is due for an endpoint with a free slot, no place of the process stays free."""
    world.turns()
    slots = SLOTS if FIRST in world.queues else RETRY_SLOTS
    assert len(world.in_flight) == min(world.capacity, slots * len(world.failing))


@given(st.integers(0, 4 * SLOTS))
def test_endpoints_that_begin_to_fail_in_flight_give_no_turn_to_others(excess: int) -> None:
    """However many deliveries started before their endpoints were known to fail, no failing endpoint gets a turn beyond half."""
    world = World(4 * SLOTS, 8, dict.fromkeys(["a", "b", "c"], True))
    for _ in range(2 * SLOTS + excess):
        world.scheduler.started("z", LONG_AGO, world.now_ms)
    assert world.turns() == []


# --- slots ---

QUEUE_LENGTHS = st.integers(0, 8)
IN_FLIGHT = st.tuples(st.integers(0, SLOTS), st.integers(0, RETRY_SLOTS)).filter(lambda n: sum(n) <= SLOTS)


def picked(lengths: tuple[int, int, int], in_flight: tuple[int, int]) -> list[str]:
    """What is picked of one endpoint's queues, as `<queue><number>`."""
    candidates = [
        Candidate(f"{queue}{number}", "endpoint", queue, *in_flight)
        for queue, length in enumerate(lengths)
        for number in range(length)
    ]
    return [each.delivery_id for each in FairScheduler(100, 1).pick(candidates).deliveries]


@given(st.tuples(QUEUE_LENGTHS, QUEUE_LENGTHS, QUEUE_LENGTHS), IN_FLIGHT)
def test_slots_are_kept_to_and_none_is_wasted(
    lengths: tuple[int, int, int], in_flight: tuple[int, int]
) -> None:
    """Never are more than 4 in flight, nor more retries than 2; each queue goes in order; what may go is not held back."""
    going = picked(lengths, in_flight)
    first = [each for each in going if each[0] == str(FIRST)]
    retries = [each for each in going if each[0] != str(FIRST)]
    waiting = [f"{queue}{number}" for queue in (RETRY, REDELIVERY) for number in range(lengths[queue])]
    assert first == [f"{FIRST}{number}" for number in range(lengths[FIRST])][: len(first)]
    assert retries == waiting[: len(retries)]
    assert sum(in_flight) + len(going) <= SLOTS
    assert in_flight[1] + len(retries) <= RETRY_SLOTS
    if sum(in_flight) + len(going) < SLOTS:
        assert len(first) == lengths[FIRST]
        assert retries == waiting or in_flight[1] + len(retries) == RETRY_SLOTS


@given(st.lists(st.sampled_from([FIRST, RETRY]), min_size=1, max_size=60))
def test_neither_new_events_nor_retries_starve(ends: list[int]) -> None:
    """With endless queues, each has slots at any time, whichever deliveries end and in whatever order."""
    in_flight = Counter({FIRST: SLOTS - RETRY_SLOTS, RETRY: RETRY_SLOTS})
    for end in ends:
        in_flight[end] -= 1
        going = picked((9, 9, 0), (in_flight[FIRST], in_flight[RETRY]))
        in_flight.update(int(each[0]) for each in going)
        assert (in_flight[FIRST], in_flight[RETRY]) == (SLOTS - RETRY_SLOTS, RETRY_SLOTS)


# --- turns ---


@given(worlds(failing=NONE))
def test_nobody_is_passed_over(world: World) -> None:
    """However small pages and capacity are, endpoints follow one another in the order of their ids, round after round."""
    served: list[str] = []
    for _ in range(20):
        served += dict.fromkeys(world.turn())
        world.end(list(world.in_flight))
    assert served == list(islice(cycle(sorted(world.failing)), len(served)))


@given(worlds(), st.data())
def test_no_endpoint_starves(world: World, data: st.DataObject) -> None:
    """Whichever deliveries end, as long as the oldest do, each endpoint has a turn again within some rounds."""
    waiting = Counter(dict.fromkeys(world.failing, 0))
    for _ in range(20 * len(world.failing)):
        started = world.turns()
        waiting.update(world.failing)
        waiting.update(
            {each: -waiting[each] for each in {*started, *(n.endpoint_id for n in world.in_flight)}}
        )
        assert max(waiting.values()) <= 8 * len(world.failing)
        oldest = world.in_flight[: (len(world.in_flight) + 1) // 2]
        world.end(oldest)
        world.now_ms += data.draw(st.sampled_from([STEP_MS // 2, STEP_MS]))


@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 7), st.data())
def test_failing_endpoints_have_their_turns_one_after_the_other(
    count: int, room: int, page_size: int, data: st.DataObject
) -> None:
    """However many they are, looked at page by page, none has a second turn before each had one, whoever hangs."""
    endpoints = [f"{number:02}" for number in range(count)]
    hanging = data.draw(st.sets(st.sampled_from(endpoints), max_size=room - 1))
    world = World(2 * SLOTS * room, page_size, dict.fromkeys(endpoints, True))
    turns: Counter[str] = Counter()
    for _ in range(2 + 3 * count):
        world.now_ms += STEP_MS
        turns.update(set(world.turns()))
        others = [turns[each] for each in endpoints if each not in hanging]
        assert max(others, default=0) - min(others, default=0) <= 1
        world.end([each for each in world.in_flight if each.endpoint_id not in hanging])
    assert turns.keys() == set(endpoints)


# --- when to look again ---


def at(ms: int | None) -> str | None:
    """The instant so many milliseconds from now."""
    return None if ms is None else instant(NOW_MS + ms)


DUE_MS = st.none() | st.integers(-2000, 2000)


@given(
    st.lists(st.tuples(DUE_MS, DUE_MS, DUE_MS, st.integers(0, SLOTS)), min_size=1, max_size=12),
    st.integers(1, 5),
)
def test_the_next_look_is_when_the_next_delivery_is_due(
    endpoints: list[tuple[int | None, int | None, int | None, int]], page_size: int
) -> None:
    """It comes at once while there are more pages, then with the first delivery that is not due yet and has a slot."""
    scheduler = FairScheduler(100, page_size)
    pages = [
        EndpointQueues(f"{number:02}", at(first), at(retry), at(redelivery), in_flight, WORKS)
        for number, (first, retry, redelivery, in_flight) in enumerate(endpoints)
    ]
    for start in range(0, len(pages) + 1, page_size):
        scheduler.look(pages[start : start + page_size], {}, NOW_MS)
        if start + page_size <= len(pages):
            assert scheduler.wait_ms(NOW_MS) == 0
    dues_ms = [ms for *dues, in_flight in endpoints if in_flight < SLOTS for ms in dues]
    waits = [ms for ms in dues_ms if ms is not None and ms > 0]
    assert scheduler.wait_ms(NOW_MS) == min(waits, default=float("inf"))


def test_an_endpoint_is_not_asked_for_what_it_cannot_take() -> None:
    """One that is disabled, has no free slot, or has nothing due has no turn; a slot freed since then counts."""
    later = instant(NOW_MS + 1)
    page = [
        EndpointQueues("disabled", LONG_AGO, None, None, 0, None),
        EndpointQueues("freed", LONG_AGO, None, None, SLOTS, WORKS),
        EndpointQueues("full", LONG_AGO, None, None, SLOTS, WORKS),
        EndpointQueues("later", later, later, later, 0, WORKS),
        EndpointQueues("ready", None, LONG_AGO, None, SLOTS - 1, WORKS),
    ]
    assert FairScheduler(100, 10).look(page, {"freed": 1}, NOW_MS) == ["freed", "ready"]


@given(worlds())
def test_a_pick_that_was_not_claimed_changes_nothing(world: World) -> None:
    """A transaction that is run again picks the same."""
    candidates = [each for endpoint_id in world.failing for each in world.candidates(endpoint_id)]
    assert world.scheduler.pick(candidates) == world.scheduler.pick(candidates)
    assert world.scheduler.resume_after == ""


# --- failing endpoints ---


def test_a_failing_endpoint_has_a_turn_every_step_until_it_works() -> None:
    """After a second of failures it has a turn each 50 ms; after a success, or with the clock set back, at once."""
    scheduler = FairScheduler(100, 10)
    queues = EndpointQueues("a", LONG_AGO, None, None, 0, LONG_AGO)

    def has_turn(now_ms: int, failing_ms: int = FAILING_AFTER_MS) -> bool:
        failing = queues._replace(failing_since=instant(now_ms - failing_ms))
        return scheduler.look([failing], {}, now_ms) == ["a"]

    assert has_turn(NOW_MS)
    scheduler.started("a", LONG_AGO, NOW_MS)
    assert not has_turn(NOW_MS + STEP_MS - 1)
    assert scheduler.wait_ms(NOW_MS + STEP_MS - 1) == STEP_MS
    assert has_turn(NOW_MS + STEP_MS - 1, FAILING_AFTER_MS - 1)
    assert has_turn(NOW_MS + STEP_MS)
    assert has_turn(NOW_MS - 1)
    scheduler.started("a", LONG_AGO, NOW_MS)
    scheduler.ended("a", failing=True, delivered=False)
    assert not has_turn(NOW_MS)
    scheduler.ended("a", failing=True, delivered=True)
    assert has_turn(NOW_MS)
