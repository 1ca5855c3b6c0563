"""Metrics for Prometheus: requests by route and status, with their durations; the sockets that are open.

Counting is two dict look-ups; the exposition format is the library's. Where several workers serve one port,
each leaves its figures in a file and whoever is asked adds them up.
"""

import os
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Key = tuple[str, str, int]  # method, route, status
Figures = dict[Key, list[float]]  # a count for each bucket and beyond, then the sum of seconds


class _Shared(msgspec.Struct):
    """What a process leaves for the others."""

    figures: list[tuple[Key, list[float]]]
    sockets: int


class Metrics:
    """The figures of this process, and with `directory` of all that share it.

    `sockets` is how many are open; whoever opens and closes them counts.
    """

    def __init__(self, directory: str | None = None) -> None:
        self.sockets = 0
        self._figures: Figures = {}
        self._directory = Path(directory) if directory else None

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts one request."""
        key = (method, route, status)
        figures = self._figures.get(key)
        if figures is None:
            figures = self._figures[key] = [0.0] * (len(BUCKETS) + 2)
        figures[bisect_left(BUCKETS, seconds)] += 1
        figures[-1] += seconds

    def share(self) -> None:
        """Leaves this process's figures for the others."""
        if self._directory is not None:
            target = self._directory / f"{os.getpid()}.json"
            scratch = target.with_suffix(".new")
            scratch.write_bytes(msgspec.json.encode(_Shared(list(self._figures.items()), self.sockets)))
            scratch.replace(target)

    def exposition(self) -> bytes:
        """The text that Prometheus reads."""
        registry = CollectorRegistry()
        registry.register(_Collected(*self._all()))
        return generate_latest(registry)

    def _all(self) -> tuple[Figures, int]:
        if self._directory is None:
            return self._figures, self.sockets
        self.share()
        found: Figures = {}
        sockets = 0
        for path in self._directory.glob("*.json"):
            shared = msgspec.json.decode(path.read_bytes(), type=_Shared)
            sockets += shared.sockets if _is_running(int(path.stem)) else 0
            for key, figures in shared.figures:
                known = found.setdefault(key, [0.0] * len(figures))
                found[key] = [a + b for a, b in zip(known, figures, strict=True)]
        return found, sockets


class _Collected:
    """The figures as the library's families."""

    def __init__(self, figures: Figures, sockets: int) -> None:
        self._figures = figures
        self._sockets = sockets

    def collect(self) -> Iterator[Metric]:
        labels = ["method", "route", "status"]
        requests = CounterMetricFamily("tradepost_requests", "Requests answered.", labels=labels)
        seconds = HistogramMetricFamily(
            "tradepost_request_seconds", "Time to answer.", labels=["method", "route"]
        )
        merged: dict[tuple[str, str], list[float]] = {}
        for (method, route, status), figures in sorted(self._figures.items()):
            requests.add_metric([method, route, str(status)], sum(figures[:-1]))
            known = merged.setdefault((method, route), [0.0] * len(figures))
            merged[method, route] = [a + b for a, b in zip(known, figures, strict=True)]
        for key, figures in merged.items():
            seconds.add_metric(list(key), _cumulative(figures), figures[-1])
        yield requests
        yield seconds
        sockets = GaugeMetricFamily("tradepost_sockets_open", "WebSockets that are open.")
        sockets.add_metric([], self._sockets)
        yield sockets
        resident = GaugeMetricFamily("tradepost_resident_bytes", "Memory of this process.")
        resident.add_metric([], _resident_bytes())
        yield resident


def _cumulative(figures: list[float]) -> list[tuple[str, float]]:
    total, found = 0.0, []
    for bound, count in zip([*map(str, BUCKETS), "+Inf"], figures[:-1], strict=True):
        total += count
        found.append((bound, total))
    return found


def _is_running(pid: int) -> bool:
    """A process that died leaves its counts, but no open sockets."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _resident_bytes() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        return 0.0
    return float(pages * os.sysconf("SC_PAGE_SIZE"))
