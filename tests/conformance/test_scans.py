"""Reads that may take long run beside everything else, and no longer than somebody waits for them."""

import asyncio
import time
from collections.abc import Callable

import pytest
from sqlalchemy import text

from tests.conformance.store import Store
from tests.service import Service
from tradepost.problems import Unavailable
from tradepost.storage import sqlite
from tradepost.storage.statement import Statement

ENDLESS = Statement(
    "counts for ever",
    text("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"),
    bounded=False,
)
SHORT = Statement("counts to one", text("SELECT 1"), bounded=False)


@pytest.fixture(scope="module")
def store(new_service: Callable[..., Service]) -> Store:
    """SQLite: PostgreSQL runs what it is asked in processes of its own."""
    return Store(new_service("sqlite"))


def test_a_scan_nobody_waits_for_ends(store: Store) -> None:
    """Scans that are cancelled, running or not yet begun, free their threads for the next one at once."""

    async def run() -> float:
        scans = [asyncio.ensure_future(store.database.reading().rows(ENDLESS)) for _ in range(6)]
        await asyncio.sleep(0)
        began = time.monotonic()
        for scan in scans:
            scan.cancel()
        await asyncio.gather(*scans, return_exceptions=True)
        assert await store.database.reading().rows(SHORT) == [(1,)]
        return time.monotonic() - began

    assert store.run(run()) < sqlite._SCAN_SECONDS / 2


def test_a_scan_that_takes_too_long_ends(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past its time a scan is unavailable, and its thread free."""
    monkeypatch.setattr(sqlite, "_SCAN_SECONDS", 0.05)
    for _ in range(3):
        with pytest.raises(Unavailable):
            store.read(ENDLESS)
    assert store.read(SHORT) == [(1,)]
