"""Both event loops that the service runs on, and less patience with what is silent."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
import uvloop

T = TypeVar("T")


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a coroutine to its end on each loop in turn."""
    factory = uvloop.new_event_loop if request.param == "uvloop" else None

    def run_it(work: Coroutine[Any, Any, T]) -> T:
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(work)

    return run_it


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up is silent after a twentieth of a second, and one of which an old answer is kept, too."""
    monkeypatch.setattr("tradepost.egress.threads._QUICK_SECONDS", 0.05)
    monkeypatch.setattr("tradepost.egress.resolver._REFRESH_SECONDS", 0.05)
