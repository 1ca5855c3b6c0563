"""Bursts of deliveries: one process changes products and delivers the events to ten endpoints.

They need nothing but the API, so that any version of tradepost can be measured.
"""

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from benchmarks import cores
from benchmarks.client import Client
from benchmarks.request import Request
from benchmarks.services import OpenService
from benchmarks.webhook_loop import PATHS
from benchmarks.webhook_shop import EVENT_TYPE, change
from benchmarks.webhook_sink import Sink
from benchmarks.webhook_writer import write

_BURSTS = 20
_CHANGES = 10  # of a burst
_LOOK_SECONDS = 0.01
_LIMIT = 60.0
_ENDPOINTS = "/v1/webhook-endpoints"
_PENDING = "/v1/webhook-deliveries?status=PENDING&limit=1"

_numbers = itertools.count()


@dataclass(frozen=True)
class Bursts:
    """Deliveries per second, and microseconds of CPU per delivery.

    A delivery includes a tenth of the request that caused it, as ten endpoints share one.
    """

    rate: float
    cpu: float


def register(client: Client, sink: Sink) -> list[str]:
    """Ten endpoints at the sink, disabled outside measurements; returns their ids."""
    return [_registered(client, sink.url(path)) for path in PATHS]


def deliver(services: Sequence[OpenService], endpoints: Sequence[str], sink: Sink) -> list[Bursts]:
    """Alternate bursts of two services, in the order A B B A, after one of each as a warm-up."""
    with _enabled(services, endpoints):
        for service in services:
            _burst(service, sink)
        before = [cores.cpu_seconds(service.server.pid) for service in services]
        elapsed = [0.0] * len(services)
        for number in range(_BURSTS):
            for index in (0, 1) if number % 2 == 0 else (1, 0):
                elapsed[index] += _burst(services[index], sink)
        after = [cores.cpu_seconds(service.server.pid) for service in services]
    count = _BURSTS * _CHANGES * len(PATHS)
    used = [now - cpu for now, cpu in zip(after, before, strict=True)]
    return [Bursts(count / took, 1e6 * cpu / count) for took, cpu in zip(elapsed, used, strict=True)]


def _burst(service: OpenService, sink: Sink) -> float:
    """One burst, until every result is recorded; returns the seconds it took."""
    sink.take()
    products = itertools.islice(itertools.cycle(service.shop.products), _CHANGES)
    changes = [change(product, f"Number {next(_numbers)}") for product in products]
    began = time.perf_counter()
    write(service.server.port, service.key, changes, rate=None)
    sink.wait_for(_CHANGES * len(PATHS))
    with service.client() as client:
        while client.get(_PENDING)["items"]:
            if time.perf_counter() - began > _LIMIT:
                raise RuntimeError(f"deliveries are still pending after {_LIMIT:g} s")
            time.sleep(_LOOK_SECONDS)
    return time.perf_counter() - began


def _registered(client: Client, url: str) -> str:
    body = msgspec.json.encode({"url": url, "eventTypes": [EVENT_TYPE], "status": "DISABLED"})
    return str(msgspec.json.decode(client.send(Request("POST", _ENDPOINTS, body)).body)["id"])


@contextmanager
def _enabled(services: Sequence[OpenService], endpoints: Sequence[str]) -> Iterator[None]:
    for service in services:
        _switch(service, endpoints, "ENABLED")
    yield
    for service in services:
        _switch(service, endpoints, "DISABLED")


def _switch(service: OpenService, endpoints: Sequence[str], status: str) -> None:
    with service.client() as client:
        for endpoint in endpoints:
            client.patch(f"{_ENDPOINTS}/{endpoint}", {"status": status})
