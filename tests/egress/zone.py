"""Names and their addresses, and time, as a test has them."""

import threading
from collections.abc import Sequence

from tests.egress.receiving import WAIT

PUBLIC, OTHER = "93.184.215.14", "2606:4700::1111"


class Zone:
    """Names and their addresses, in turn; no other has any. One that is `silent` is not answered before `speak`."""

    def __init__(self, *silent: str, **addresses: Sequence[Sequence[str]]) -> None:
        self.asked: list[str] = []
        self.speak = threading.Event()
        self.silent = set(silent)
        self._addresses = addresses

    def __call__(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        if host in self.silent:
            assert self.speak.wait(WAIT)
        found = self._addresses.get(host, [[]])
        return found[min(self.asked.count(host), len(found)) - 1]


class Seconds:
    """Time that passes when a test lets it."""

    def __init__(self) -> None:
        self.passed = 0.0

    def __call__(self) -> float:
        return self.passed
