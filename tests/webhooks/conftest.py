"""A service on each engine whose clock stands still, a courier for it, and receivers."""

from collections.abc import Callable, Iterator

import pytest

from tests.given_clock import GivenClock
from tests.service import Service
from tests.webhooks.courier import Answer, Courier, Receiver


@pytest.fixture
def clock() -> GivenClock:
    """The clock of the service."""
    return GivenClock()


@pytest.fixture
def shop_service(engine: str, new_database: Callable[[str], str], clock: GivenClock) -> Iterator[Service]:
    """A service that may deliver to loopback, on each engine, with nothing in it from another test."""
    service = Service(new_database(engine), clock=clock, webhook_allow_private="1")
    yield service
    service.stop()


@pytest.fixture
def courier(shop_service: Service) -> Iterator[Courier]:
    """Who delivers for it."""
    made = Courier(shop_service)
    yield made
    made.stop()


@pytest.fixture
def new_receiver(shop_service: Service) -> Iterator[Callable[..., Receiver]]:
    """Starts receivers."""
    running: list[Receiver] = []

    def new(answer: Answer | int = 204) -> Receiver:
        running.append(Receiver(shop_service, answer))
        return running[-1]

    yield new
    for each in running:
        each.stop()
