"""Metrics for Prometheus: requests by route and status, with their durations.

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


class Metrics:
    """The figures of this process, and with `directory` of all that share it."""

    def __init__(self, directory: str | None = None) -> None:
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
            scratch.write_bytes(msgspec.json.encode(list(self._figures.items())))
            scratch.replace(target)

    def exposition(self) -> bytes:
        """The text that Prometheus reads."""
        registry = CollectorRegistry()
        registry.register(_Collected(self._all()))
        return generate_latest(registry)

    def _all(self) -> Figures:
        if self._directory is None:
            return self._figures
        self.share()
        found: Figures = {}
        for path in self._directory.glob("*.json"):
            for key, figures in msgspec.json.decode(path.read_bytes(), type=list[tuple[Key, list[float]]]):
                known = found.setdefault(key, [0.0] * len(figures))
                found[key] = [a + b for a, b in zip(known, figures, strict=True)]
        return found


class _Collected:
    """The figures as the library's families."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

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
        resident = GaugeMetricFamily("tradepost_resident_bytes", "Memory of this process.")
        resident.add_metric([], _resident_bytes())
        yield resident


def _cumulative(figures: list[float]) -> list[tuple[str, float]]:
    total, found = 0.0, []
    for bound, count in zip([*map(str, BUCKETS), "+Inf"], figures[:-1], strict=True):
        total += count
        found.append((bound, total))
    return found


def _resident_bytes() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        return 0.0
    return float(pages * os.sysconf("SC_PAGE_SIZE"))
