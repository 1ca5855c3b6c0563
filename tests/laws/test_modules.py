"""A request passes through few modules: a reader who follows it opens that many files."""

from collections.abc import Callable

import pytest
from benchmarks.bench_modules import PLACING, READING, Entered, walked

from tests.service import Service

# Modules of tradepost that a request may enter on SQLite. Lower a bound when fewer are entered.
AT_MOST = {PLACING: 22, READING: 14}


@pytest.fixture(scope="module")
def walks(new_service: Callable[..., Service]) -> dict[str, Entered]:
    """What each walk enters."""
    service = new_service(webhook_allow_private="1")
    return service.run(walked(service.app, service.settings, service.key))


@pytest.mark.parametrize("walk", AT_MOST)
def test_a_request_enters_few_modules(walks: dict[str, Entered], walk: str) -> None:
    """Placing an order and reading one enter no more modules than the bound."""
    entered = walks[walk].modules
    assert 0 < len(entered) <= AT_MOST[walk], entered
