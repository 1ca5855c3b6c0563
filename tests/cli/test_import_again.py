"""Whatever happens to an import, nothing is in twice and nothing is in half; importing again goes on."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Commands, asked
from tests.cli.files import id_of, json_lines, order, with_people_and_goods
from tests.flows.forked import Forked
from tests.flows.process import environment

LINES = 40
BATCH = 20_000 // (LINES + 2)  # orders of so many lines that are written together
INSTANT = "2025-03-04T05:06:07.089Z"


def orders(count: int) -> list[dict[str, Any]]:
    return [order(n, *[{"sku": "S-1", "quantity": 1 + n % 7}] * LINES) for n in range(count)]


def check_nothing_half(url: str) -> int:
    """Every order has all its lines, its total, its event and its reference; how many there are."""
    (counts,) = asked(
        url,
        "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM line_items),"
        " (SELECT count(*) FROM events WHERE type LIKE '%order.placed'), (SELECT count(*) FROM import_references)",
    )
    there = int(counts[0])
    assert counts == (there, LINES * there, there, there)
    wrong = asked(
        url,
        "SELECT id FROM orders WHERE total <> (SELECT sum(total) FROM line_items WHERE order_id = orders.id)"
        " OR NOT EXISTS (SELECT 1 FROM import_references WHERE entity_id = orders.id)"
        " OR NOT EXISTS (SELECT 1 FROM events WHERE subject = 'orders/' || orders.id)",
    )
    assert wrong == []
    return there


@pytest.mark.parametrize("behind", [0, BATCH // 2, BATCH - 1])
def test_an_import_that_was_killed_goes_on_when_it_is_run_again(
    tradepost: Commands, tmp_path: Path, behind: int
) -> None:
    """After kill -9 at any moment whole orders are in, and importing again brings the others, each once."""
    with_people_and_goods(tradepost, tmp_path)
    rows = orders(2 * BATCH + 30 + behind)
    with Forked(environment(tradepost.url), "import", "orders", "-", "--format", "jsonl") as running:
        # Whoever has read this much has begun to write the second batch.
        running.input.write("".join(f"{json.dumps(row)}\n" for row in rows))
        running.input.flush()
        running.send(signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL
    there = check_nothing_half(tradepost.url)
    assert there >= BATCH
    out = tradepost.done("import", "orders", json_lines(tmp_path / "orders.jsonl", rows))
    assert f"{len(rows) - there:,} imported, {there:,} already there" in out
    assert check_nothing_half(tradepost.url) == len(rows)


def test_two_imports_of_one_file_at_once_bring_everything_once(tradepost: Commands, tmp_path: Path) -> None:
    """Whichever of two writers is first, each order is in once, and neither import fails."""
    with_people_and_goods(tradepost, tmp_path)
    file = json_lines(tmp_path / "orders.jsonl", orders(2 * BATCH + 30))
    found = environment(tradepost.url)
    with Forked(found, "import", "orders", file) as one, Forked(found, "import", "orders", file) as other:
        said = [each.out.read() for each in (one, other)]
        assert [each.wait() for each in (one, other)] == [0, 0]
    added = [int(each.split(" imported")[0].rpartition(" ")[2].replace(",", "")) for each in said]
    assert sum(added) == check_nothing_half(tradepost.url) == 2 * BATCH + 30


def test_a_row_that_only_the_database_can_refuse_takes_no_other_along(
    tradepost: Commands, tmp_path: Path
) -> None:
    """Of a batch in which one order cannot be written, all the others are."""
    with_people_and_goods(tradepost, tmp_path)
    taken = {"sku": "S-1", "quantity": 1, "id": id_of(INSTANT)}
    rows = [order(n) for n in range(200)]
    rows[20]["lineItems"] = rows[150]["lineItems"] = [taken]
    ended = tradepost("import", "orders", json_lines(tmp_path / "orders.jsonl", rows))
    assert "200 read, 199 imported, 0 already there, 1 rejected" in ended.out
    assert "line 151: id Another line item has this id" in ended.err
    assert asked(tradepost.url, "SELECT count(*) FROM events WHERE type LIKE '%order.placed'") == [(199,)]


def test_everything_that_comes_in_is_announced(
    commands: Callable[[str], Commands], engine: str, tmp_path: Path
) -> None:
    """Each user, product and order that was imported has its event, and what was there already has no other."""
    tradepost = commands(engine)
    for _ in range(2):
        with_people_and_goods(tradepost, tmp_path)
        tradepost.done("import", "orders", json_lines(tmp_path / "orders.jsonl", [order(1)]))
    names = asked(tradepost.url, "SELECT type, source FROM events ORDER BY seq")
    kinds = ["user.created"] * 2 + ["product.created"] * 3 + ["order.placed"]
    assert names == [(f"dev.tradepost.{kind}", "http://127.0.0.1:8000") for kind in kinds]
