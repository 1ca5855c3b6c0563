"""How soon events reach their receivers: each arrival beside the change that caused it."""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.webhook_shop import DELIVERING, WebhookShop
from benchmarks.webhook_sink import Arrival, Sink
from benchmarks.webhook_writer import Written, write

_LOOK_SECONDS = 0.05
_WARM_UP = 2.0
_LIMIT = 60.0


@dataclass(frozen=True)
class Delay:
    """Of one delivery, in seconds: since the change was sent, and since it was answered."""

    path: str
    since_sent: float
    since_answered: float


def observe(
    shop: WebhookShop, sink: Sink, paths: Sequence[str], events: float, seconds: float, folder: Path
) -> list[Delay]:
    """Of all that one process, which serves and delivers, sends to these paths at so many events a second."""
    changes = shop.changes(round(events * (_WARM_UP + seconds)))
    sink.take()
    with DELIVERING.serve(shop.database, shop.key, folder / f"{shop.name}.log") as server:
        written = write(server.port, shop.key, changes, events)
        arrived = collect(sink, written, paths)
    from_ = written[0].sent + _WARM_UP
    return [delay for one, delay in delays_of(written, arrived) if one.sent >= from_]


def collect(sink: Sink, written: Sequence[Written], paths: Sequence[str]) -> list[Arrival]:
    """What came of these changes at these paths, when all has come; RuntimeError if it does not."""
    subjects = {one.subject for one in written}
    arrived: list[Arrival] = []
    deadline = time.monotonic() + _LIMIT
    expected = len(written) * len(paths)
    while len(arrived) < expected:
        if time.monotonic() > deadline:
            raise RuntimeError(f"of {expected} deliveries {len(arrived)} came")
        time.sleep(_LOOK_SECONDS)
        arrived += [each for each in sink.take() if each.subject in subjects and each.path in paths]
    return arrived


def percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def delays_of(written: Sequence[Written], arrived: Sequence[Arrival]) -> Iterator[tuple[Written, Delay]]:
    """A product's changes and its events follow one another alike: ids of events are in order of time."""
    events = defaultdict(set)
    for arrival in arrived:
        events[arrival.subject].add(arrival.event_id)
    ordered = {subject: iter(sorted(ids)) for subject, ids in events.items()}
    change_of = {next(ordered[one.subject]): one for one in written}
    for arrival in arrived:
        one = change_of[arrival.event_id]
        yield one, Delay(arrival.path, arrival.at - one.sent, arrival.at - one.answered)
