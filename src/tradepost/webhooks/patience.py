"""Endpoints that have done nothing but fail for a while: how often, and how many at once, they are tried.

One that refuses at once would otherwise be tried as fast as it refuses, through all that waits for it, and
take from others what that costs. Those that hang would fill all places of a process, if they are many. So
each has a turn every 50 ms, and together they have half of the places. The first success ends it.
"""

from tradepost.clock import parse_instant
from tradepost.webhooks.slots import SLOTS

_PATIENCE_MS = 1000
STEP_MS = 50


def only_fails(since: str | None, now: int) -> bool:
    """Whether an endpoint that fails since an instant, or works, counts as one that only fails."""
    if not since:
        return False
    return now - parse_instant(since) >= _PATIENCE_MS


class Patience:
    """What a worker grants the endpoints that only fail; `places` is how many of their deliveries are out."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._out = 0
        self._tried: dict[str, int] = {}  # in the last 50 ms, and when (ms)
        self._behind = ""  # who had a turn last; nobody once all had one
        self._all = True  # have had one, of those looked at since the first

    def turns(self, due: list[str], now: int, *, to_the_end: bool) -> list[str]:
        """Who of those that are due, in the order of their ids, gets a turn: whose was longest ago.

        `to_the_end` says that there are none behind them.
        """
        room = (self._places - self._out) // SLOTS
        ahead = [each for each in due if each > self._behind and not self._is_recent(each, now)]
        going = ahead[:room]
        if going:
            self._behind = going[-1]
        self._all &= len(going) == len(ahead)
        if to_the_end:
            self._behind, self._all = "" if self._all else self._behind, True
        return going

    def tried(self, endpoint_id: str, now: int) -> None:
        """Notes that a delivery goes out to one of them."""
        self._tried[endpoint_id] = now
        self._out += 1

    def ended(self, endpoint_id: str, *, delivered: bool) -> None:
        """Notes that it is not out any more; with a success the next turn comes at once."""
        self._out -= 1
        if delivered:
            self._tried.pop(endpoint_id, None)

    def forget(self, now: int) -> None:
        """Forgets who was tried longer ago than matters."""
        self._tried = {each: at for each, at in self._tried.items() if self._is_recent(each, now)}

    def _is_recent(self, endpoint_id: str, now: int) -> bool:
        """Whether it was tried less than a step ago; not if the clock was set back meanwhile."""
        return 0 <= now - self._tried.get(endpoint_id, 0) < STEP_MS
