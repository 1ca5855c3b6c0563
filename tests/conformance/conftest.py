"""The storage suite: the same tests on both engines, against the database itself."""

from collections.abc import Callable

import pytest

from tests.conformance.store import Store
from tests.service import Service


@pytest.fixture(scope="module")
def store(engine: str, new_service: Callable[..., Service]) -> Store:
    """A database of its own for each file of tests, on each engine."""
    return Store(new_service(engine))
