"""Fairness: which deliveries are next. The scheduler is told what there is; it knows no clock, no database.

Endpoints take turns in the order of their ids, one page of them after another (round robin). All workers
together have at most `SLOTS` deliveries of an endpoint in flight. Retries and redeliveries are picked first,
for at most `RETRY_SLOTS` of them, so neither they nor newer events starve. A process has a capacity, and
failing endpoints share half of it.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tradepost.clock import instant, parse_instant
from tradepost.domain.webhook_delivery import RETRY_SLOTS, SLOTS
from tradepost.webhooks.failure_throttle import STEP_MS, FailureThrottle, is_failing


class EndpointQueues(NamedTuple):
    """An endpoint with waiting deliveries: when the first of each queue is due, and how many are in flight.

    `failing_since` is empty if the endpoint works, and None if it is not enabled.
    """

    endpoint_id: str
    first_attempt_at: str | None
    retry_at: str | None
    redelivery_at: str | None
    in_flight: int
    failing_since: str | None

    @property
    def heads(self) -> list[str]:
        """When the first delivery of each queue is due, if there is one."""
        return [at for at in self[1:4] if at is not None]


class Candidate(NamedTuple):
    """A waiting delivery, and how many deliveries of its endpoint are in flight.

    `queue` is 0 for a first attempt, 1 for a retry, 2 for a redelivery; `retries_in_flight` counts 1 and 2.
    `details` are for the claim of the delivery.
    """

    delivery_id: str
    endpoint_id: str
    queue: int
    first_attempts_in_flight: int
    retries_in_flight: int
    details: tuple[Any, ...] = ()


Queue = list[Candidate]


class Pick(NamedTuple):
    """The deliveries to claim; and the endpoint of the last one, if they use the capacity up."""

    deliveries: list[Candidate]
    resume_after: str | None


class FairScheduler:
    """Schedules the deliveries of one process, of which `capacity` may be in flight.

    A page holds the queues of up to `page_size` endpoints, those that follow `resume_after`.
    """

    def __init__(self, capacity: int, page_size: int) -> None:
        self.resume_after = ""
        self._page_size = page_size
        self._free = capacity
        self._throttle = FailureThrottle(capacity // 2)
        self._next_due_ms = math.inf  # of the endpoints seen since the first page

    @property
    def is_full(self) -> bool:
        """Whether a delivery has to end before another may start."""
        return self._free <= 0

    def look(self, page: Sequence[EndpointQueues], freed: Mapping[str, int], now_ms: int) -> list[str]:
        """The ids of the endpoints whose turn it is: each has a free slot and something due.

        `freed` counts the deliveries of an endpoint that have ended, but not yet in the database.
        """
        is_first = not self.resume_after
        self.resume_after = "" if len(page) < self._page_size else page[-1].endpoint_id
        now_at = instant(now_ms)
        enabled = [each for each in page if each.failing_since is not None]
        free = [each for each in enabled if each.in_flight - freed.get(each.endpoint_id, 0) < SLOTS]
        due = [each for each in free if any(at <= now_at for at in each.heads)]
        failing = [each.endpoint_id for each in due if is_failing(each.failing_since, now_ms)]
        left_out = self._throttle.left_out(failing, now_ms, is_first=is_first)
        next_at = min((at for each in free for at in each.heads if at > now_at), default=None)
        self._next_due_ms = min(
            math.inf if is_first else self._next_due_ms,
            now_ms + STEP_MS if left_out else math.inf,
            parse_instant(next_at) if next_at else math.inf,
        )
        return [each.endpoint_id for each in due if each.endpoint_id not in left_out]

    def wait_ms(self, now_ms: int) -> float:
        """Milliseconds until the next look: 0 if there are more pages, infinity if nothing waits."""
        return 0.0 if self.resume_after else max(0.0, self._next_due_ms - now_ms)

    def pick(self, candidates: Iterable[Candidate]) -> Pick:
        """Those of the deliveries, each queue in its order, that fit into the slots and the capacity.

        This changes nothing, so that a transaction may be run again.
        """
        endpoints: dict[str, list[Queue]] = defaultdict(lambda: [[], [], []])
        for each in candidates:
            endpoints[each.endpoint_id][each.queue].append(each)
        fitting = [each for _, queues in sorted(endpoints.items()) for each in _fitting(*queues)]
        picked = fitting[: self._free]
        return Pick(picked, picked[-1].endpoint_id if picked and len(picked) == self._free else None)

    def claimed(self, pick: Pick) -> None:
        """Takes note that a pick was claimed: if it used up the capacity, the next look resumes behind it."""
        if pick.resume_after is not None:
            self.resume_after = pick.resume_after

    def started(self, endpoint_id: str, failing_since: str | None, now_ms: int) -> bool:
        """Takes note that a delivery started; whether its endpoint is failing, for `ended`."""
        failing = is_failing(failing_since, now_ms)
        self._free -= 1
        if failing:
            self._throttle.started(endpoint_id, now_ms)
        return failing

    def ended(self, endpoint_id: str, *, failing: bool, delivered: bool) -> None:
        """Takes note that a delivery ended; `failing` is what `started` said of it."""
        self._free += 1
        if failing:
            self._throttle.ended(endpoint_id, delivered=delivered)


def _fitting(first_attempts: Queue, retries: Queue, redeliveries: Queue) -> list[Candidate]:
    """The deliveries of one endpoint that fit into its free slots."""
    later = retries + redeliveries
    any_of_them = (first_attempts or later)[0]
    retries_in_flight = any_of_them.retries_in_flight
    free = max(0, SLOTS - any_of_them.first_attempts_in_flight - retries_in_flight)
    chosen = later[: max(0, min(free, RETRY_SLOTS - retries_in_flight))]
    return chosen + first_attempts[: free - len(chosen)]
