"""The throttle of failing endpoints: how often, and how many at once, they are tried.

An endpoint that refuses at once would otherwise be tried as fast as it refuses, through all that waits for
it, and many that hang would take up the whole capacity of a process. So each has a turn every 50 ms, and
together they have a capacity of their own. The first success of an endpoint ends this.
"""

from tradepost.clock import parse_instant
from tradepost.domain.webhook_delivery import SLOTS

FAILING_AFTER_MS = 1000  # of nothing but failures
STEP_MS = 50  # between two turns of an endpoint


def is_failing(failing_since: str | None, now_ms: int) -> bool:
    """Whether an endpoint has done nothing but fail for a second; `failing_since` is an instant, or empty."""
    return bool(failing_since) and now_ms - parse_instant(failing_since or "") >= FAILING_AFTER_MS


class FailureThrottle:
    """Gives turns to failing endpoints, of whose deliveries `capacity` may be in flight."""

    def __init__(self, capacity: int) -> None:
        self._free = capacity
        self._tried_ms: dict[str, int] = {}  # when, of the endpoints that had a turn in the last 50 ms
        self._served: set[str] = set()  # endpoints that have to let others go first
        self._has_left_out = False  # whether there are such others

    def left_out(self, due: list[str], now_ms: int, *, is_first: bool) -> set[str]:
        """The endpoints of a page that have no turn; none has a second one before each has had one.

        `is_first` says that this is the first page.
        """
        if is_first:
            self._served = self._served if self._has_left_out else set()
            self._has_left_out = False
        self._tried_ms = {each: at for each, at in self._tried_ms.items() if 0 <= now_ms - at < STEP_MS}
        waiting = [each for each in due if each not in self._served and each not in self._tried_ms]
        turns = waiting[: max(0, self._free) // SLOTS]
        self._has_left_out |= len(turns) < len(waiting)
        return set(due).difference(turns)

    def started(self, endpoint_id: str, now_ms: int) -> None:
        """Takes note that a delivery started."""
        self._tried_ms[endpoint_id] = now_ms
        self._served.add(endpoint_id)
        self._free -= 1

    def ended(self, endpoint_id: str, *, delivered: bool) -> None:
        """Takes note that a delivery ended; if it was `delivered`, the next turn may come at once."""
        self._free += 1
        if delivered:
            self._tried_ms.pop(endpoint_id, None)
