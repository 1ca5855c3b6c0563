"""Metrics for Prometheus: requests by route and status, with their durations; open sockets; deliveries.

Counting takes two dict look-ups; the library writes the exposition format. If several processes serve one
port, each writes its figures to a file, and the process that is scraped adds them up.
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
Figures = dict[Key, list[float]]  # a count for each bucket and for +Inf, then the sum of seconds


def _zeros() -> list[float]:
    return [0.0] * (len(BUCKETS) + 2)


class DeliveryFigures(msgspec.Struct):
    """The webhook deliveries of a process, and the backlog in the database as it was last measured."""

    attempts: dict[str, int] = msgspec.field(default_factory=dict)  # by outcome
    durations: list[float] = msgspec.field(default_factory=_zeros)
    lags: list[float] = msgspec.field(default_factory=_zeros)
    expired: int = 0
    abandoned: int = 0
    pending: int = 0
    oldest_due_ms: int | None = None
    measured_ms: int = 0

    def attempted(self, status: int | None, duration_ms: int) -> None:
        """Counts a request to a receiver with the status of the response, or None without one."""
        outcome = "unanswered" if status is None else f"{status // 100}xx"
        self.attempts[outcome] = self.attempts.get(outcome, 0) + 1
        _count(self.durations, duration_ms / 1000)

    def started(self, lag_ms: int) -> None:
        """Counts the time between the moment an attempt was due and its start."""
        _count(self.lags, lag_ms / 1000)

    def set_backlog(self, pending: int, oldest_due_ms: int | None, now_ms: int) -> None:
        """Sets the size of the backlog, and the moment at which its first delivery is or was due."""
        self.pending, self.oldest_due_ms, self.measured_ms = pending, oldest_due_ms, now_ms

    def add(self, other: "DeliveryFigures") -> None:
        """Adds the figures of another process. The backlog is shared, so the latest measurement counts."""
        for outcome, count in other.attempts.items():
            self.attempts[outcome] = self.attempts.get(outcome, 0) + count
        self.durations = [a + b for a, b in zip(self.durations, other.durations, strict=True)]
        self.lags = [a + b for a, b in zip(self.lags, other.lags, strict=True)]
        self.expired += other.expired
        self.abandoned += other.abandoned
        if other.measured_ms > self.measured_ms:
            self.set_backlog(other.pending, other.oldest_due_ms, other.measured_ms)


class _SharedFigures(msgspec.Struct):
    """The figures that a process writes to its file for the others."""

    figures: list[tuple[Key, list[float]]]
    sockets: int
    deliveries: DeliveryFigures


class Metrics:
    """The figures of this process or, with `directory`, of all processes that share it.

    `sockets` is the number of open WebSockets, `deliveries` has the figures of workers; their owners update
    both. `wal` is the path of SQLite's write-ahead log, if SQLite is used; the file need not exist.
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
            figures = self._figures[key] = _zeros()
        _count(figures, seconds)

    def share(self) -> None:
        """Writes this process's figures for the others. Raises `OSError`."""
        if self._directory is not None:
            target = self._directory / f"{os.getpid()}.json"
            scratch = target.with_suffix(".new")
            shared = _SharedFigures(list(self._figures.items()), self.sockets, self.deliveries)
            scratch.write_bytes(msgspec.json.encode(shared))
            scratch.replace(target)

    def exposition(self) -> bytes:
        """All metrics in the text format of Prometheus. Raises `OSError`."""
        registry = CollectorRegistry()
        registry.register(_Collected(*self._all(), self._wal))
        return generate_latest(registry)

    def _all(self) -> tuple[Figures, int, DeliveryFigures]:
        if self._directory is None:
            return self._figures, self.sockets, self.deliveries
        self.share()
        total: Figures = {}
        sockets = 0
        deliveries = DeliveryFigures()
        for path in self._directory.glob("*.json"):
            shared = msgspec.json.decode(path.read_bytes(), type=_SharedFigures)
            sockets += shared.sockets if _is_running(int(path.stem)) else 0
            deliveries.add(shared.deliveries)
            for key, figures in shared.figures:
                known = total.setdefault(key, [0.0] * len(figures))
                total[key] = [a + b for a, b in zip(known, figures, strict=True)]
        return total, sockets, deliveries


class _Collected:
    """A collector that yields the figures as metric families of the library."""

    def __init__(self, figures: Figures, sockets: int, deliveries: DeliveryFigures, wal: Path | None) -> None:
        self._figures = figures
        self._sockets = sockets
        self._deliveries = deliveries
        self._wal = wal

    def collect(self) -> Iterator[Metric]:
        labels = ["method", "route", "status"]
        requests = CounterMetricFamily("tradepost_requests", "Requests by response status.", labels=labels)
        seconds = HistogramMetricFamily(
            "tradepost_request_seconds", "Duration of requests.", labels=["method", "route"]
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
        sockets = GaugeMetricFamily("tradepost_sockets_open", "Open WebSockets.")
        sockets.add_metric([], self._sockets)
        yield sockets
        resident = GaugeMetricFamily("tradepost_resident_bytes", "Resident memory of this process.")
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
            "tradepost_webhook_attempts", "Requests to receivers by outcome.", labels=["outcome"]
        )
        for outcome, count in sorted(known.attempts.items()):
            requests.add_metric([outcome], count)
        yield requests
        for name, text, figures in (
            ("tradepost_webhook_attempt_seconds", "Duration of requests to receivers.", known.durations),
            ("tradepost_webhook_lag_seconds", "Time between due and actual start of attempts.", known.lags),
        ):
            histogram = HistogramMetricFamily(name, text)
            histogram.add_metric([], _cumulative(figures), figures[-1])
            yield histogram
        for name, text, total in (
            (
                "tradepost_webhook_leases_expired",
                "Leases that ran out before their worker finished.",
                known.expired,
            ),
            (
                "tradepost_webhook_abandoned",
                "Deliveries abandoned after the last retry failed.",
                known.abandoned,
            ),
        ):
            counter = CounterMetricFamily(name, text)
            counter.add_metric([], total)
            yield counter
        yield from self._backlog()

    def _backlog(self) -> Iterator[Metric]:
        known = self._deliveries
        text = "Deliveries to enabled endpoints that are waiting and not in flight."
        pending = GaugeMetricFamily("tradepost_webhook_pending", text)
        pending.add_metric([], known.pending)
        yield pending
        oldest = GaugeMetricFamily(
            "tradepost_webhook_oldest_due_seconds", "Time for which the oldest pending delivery has been due."
        )
        overdue_ms = 0 if known.oldest_due_ms is None else max(0, known.measured_ms - known.oldest_due_ms)
        oldest.add_metric([], overdue_ms / 1000)
        yield oldest


def _count(figures: list[float], seconds: float) -> None:
    figures[bisect_left(BUCKETS, seconds)] += 1
    figures[-1] += seconds


def _cumulative(figures: list[float]) -> list[tuple[str, float]]:
    total, buckets = 0.0, []
    for bound, count in zip([*map(str, BUCKETS), "+Inf"], figures[:-1], strict=True):
        total += count
        buckets.append((bound, total))
    return buckets


def _is_running(pid: int) -> bool:
    """Whether a process is alive. The counts of a dead one remain valid, but its sockets are closed."""
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
