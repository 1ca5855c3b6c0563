"""Metrics for Prometheus: requests by route and status, with their durations; open sockets; deliveries.

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


def _none() -> list[float]:
    return [0.0] * (len(BUCKETS) + 2)


class DeliveryFigures(msgspec.Struct):
    """What became of webhook deliveries in a process, and what waits in the database as it saw it last."""

    attempts: dict[str, int] = msgspec.field(default_factory=dict)  # by outcome
    took: list[float] = msgspec.field(default_factory=_none)
    lag: list[float] = msgspec.field(default_factory=_none)
    expired: int = 0
    abandoned: int = 0
    pending: int = 0
    oldest_due: int | None = None  # ms
    measured: int = 0  # ms

    def attempted(self, status: int | None, ms: int) -> None:
        """Counts a request that was answered with `status`, or with nothing."""
        outcome = "unanswered" if status is None else f"{status // 100}xx"
        self.attempts[outcome] = self.attempts.get(outcome, 0) + 1
        _count(self.took, ms / 1000)

    def late(self, ms: int) -> None:
        """Counts how long after it was due an attempt began."""
        _count(self.lag, ms / 1000)

    def waits(self, pending: int, oldest_due: int | None, now: int) -> None:
        """Notes how much waits, and when the first of it is or was due."""
        self.pending, self.oldest_due, self.measured = pending, oldest_due, now

    def add(self, other: "DeliveryFigures") -> None:
        """Adds those of another process; what waits is the same for all, known best to who looked last."""
        for outcome, count in other.attempts.items():
            self.attempts[outcome] = self.attempts.get(outcome, 0) + count
        self.took = [a + b for a, b in zip(self.took, other.took, strict=True)]
        self.lag = [a + b for a, b in zip(self.lag, other.lag, strict=True)]
        self.expired += other.expired
        self.abandoned += other.abandoned
        if other.measured > self.measured:
            self.waits(other.pending, other.oldest_due, other.measured)


class _Shared(msgspec.Struct):
    """What a process leaves for the others."""

    figures: list[tuple[Key, list[float]]]
    sockets: int
    deliveries: DeliveryFigures


class Metrics:
    """The figures of this process, and with `directory` of all that share it.

    `sockets` is how many are open; whoever opens and closes them counts. `deliveries` is counted by workers.
    `wal` is SQLite's write-ahead log, if that is the database; it may not be there.
    """

    def __init__(self, directory: str | None = None, wal: Path | None = None) -> None:
        self.sockets = 0
        self.deliveries = DeliveryFigures()
        self._figures: Figures = {}
        self._directory = Path(directory) if directory else None
        self._wal = wal

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts one request."""
        key = (method, route, status)
        figures = self._figures.get(key)
        if figures is None:
            figures = self._figures[key] = _none()
        _count(figures, seconds)

    def share(self) -> None:
        """Leaves this process's figures for the others."""
        if self._directory is not None:
            target = self._directory / f"{os.getpid()}.json"
            scratch = target.with_suffix(".new")
            shared = _Shared(list(self._figures.items()), self.sockets, self.deliveries)
            scratch.write_bytes(msgspec.json.encode(shared))
            scratch.replace(target)

    def exposition(self) -> bytes:
        """The text that Prometheus reads."""
        registry = CollectorRegistry()
        registry.register(_Collected(*self._all(), self._wal))
        return generate_latest(registry)

    def _all(self) -> tuple[Figures, int, DeliveryFigures]:
        if self._directory is None:
            return self._figures, self.sockets, self.deliveries
        self.share()
        found: Figures = {}
        sockets = 0
        deliveries = DeliveryFigures()
        for path in self._directory.glob("*.json"):
            shared = msgspec.json.decode(path.read_bytes(), type=_Shared)
            sockets += shared.sockets if _is_running(int(path.stem)) else 0
            deliveries.add(shared.deliveries)
            for key, figures in shared.figures:
                known = found.setdefault(key, [0.0] * len(figures))
                found[key] = [a + b for a, b in zip(known, figures, strict=True)]
        return found, sockets, deliveries


class _Collected:
    """The figures as the library's families."""

    def __init__(self, figures: Figures, sockets: int, deliveries: DeliveryFigures, wal: Path | None) -> None:
        self._figures = figures
        self._sockets = sockets
        self._deliveries = deliveries
        self._wal = wal

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
        if self._wal is not None:
            log = GaugeMetricFamily("tradepost_sqlite_wal_bytes", "Size of SQLite's write-ahead log.")
            log.add_metric([], self._wal.stat().st_size if self._wal.exists() else 0)
            yield log
        yield from self._webhooks()

    def _webhooks(self) -> Iterator[Metric]:
        known = self._deliveries
        requests = CounterMetricFamily(
            "tradepost_webhook_attempts", "Requests to receivers, by outcome.", labels=["outcome"]
        )
        for outcome, count in sorted(known.attempts.items()):
            requests.add_metric([outcome], count)
        yield requests
        for name, text, figures in (
            ("tradepost_webhook_attempt_seconds", "Time until a receiver had answered.", known.took),
            (
                "tradepost_webhook_lag_seconds",
                "Time from when an attempt was due to its beginning.",
                known.lag,
            ),
        ):
            histogram = HistogramMetricFamily(name, text)
            histogram.add_metric([], _cumulative(figures), figures[-1])
            yield histogram
        for name, text, total in (
            ("tradepost_webhook_leases_expired", "Claims whose worker did not come back.", known.expired),
            ("tradepost_webhook_abandoned", "Deliveries whose last retry failed.", known.abandoned),
        ):
            counter = CounterMetricFamily(name, text)
            counter.add_metric([], total)
            yield counter
        yield from self._waiting()

    def _waiting(self) -> Iterator[Metric]:
        known = self._deliveries
        text = "Deliveries that wait for enabled endpoints and are not out."
        pending = GaugeMetricFamily("tradepost_webhook_pending", text)
        pending.add_metric([], known.pending)
        yield pending
        oldest = GaugeMetricFamily(
            "tradepost_webhook_oldest_due_seconds", "How long the first pending delivery has been due."
        )
        waited = 0 if known.oldest_due is None else max(0, known.measured - known.oldest_due)
        oldest.add_metric([], waited / 1000)
        yield oldest


def _count(figures: list[float], seconds: float) -> None:
    figures[bisect_left(BUCKETS, seconds)] += 1
    figures[-1] += seconds


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
