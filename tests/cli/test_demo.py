"""What `tradepost demo` makes: believable, and the same for the same seed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Commands, asked

DAY_MS = 24 * 3600 * 1000
KINDS = ("users", "addresses", "products", "orders")


def contents(tradepost: Commands, path: Path) -> list[Any]:
    """All there is, without what differs from run to run: ids, and instants."""
    kept = ("name", "email", "line1", "sku", "price", "stock", "currency", "status")
    return [
        {name: each.get(name) for name in kept}
        | {"lines": [(line["sku"], line["quantity"]) for line in each.get("lineItems", [])]}
        for what in KINDS
        for each in tradepost.exported(what, path)
    ]


def test_the_demo_makes_as_much_as_is_asked(tradepost: Commands, tmp_path: Path) -> None:
    """So many users, products and orders, each announced, with one to five lines in the order's currency."""
    tradepost.done("demo", "--users", "40", "--products", "30", "--orders", "150")
    users, _, products, orders = (tradepost.exported(what, tmp_path) for what in KINDS)
    assert (len(users), len(products), len(orders)) == (40, 30, 150)
    assert {len(each["lineItems"]) for each in orders} <= {1, 2, 3, 4, 5}
    currencies = {each["id"]: each["currency"] for each in products}
    assert all(
        currencies[line["productId"]] == each["currency"] for each in orders for line in each["lineItems"]
    )
    assert len({each["currency"] for each in orders}) > 1
    assert {each["status"] for each in orders} == {"PENDING", "FULFILLED", "CANCELLED"}
    born = {each["id"]: each["createdAt"] for each in [*users, *products]}
    assert all(born[each["userId"]] <= each["createdAt"] for each in orders)
    announced = asked(
        tradepost.url,
        "SELECT count(DISTINCT subject) FROM events WHERE type LIKE '%created' OR type LIKE '%placed'",
    )
    assert announced == [(40 + 30 + 150,)]


def test_the_same_seed_makes_the_same_demo(commands: Callable[[str], Commands], tmp_path: Path) -> None:
    """Two databases filled with one seed say the same but for ids and instants; another seed says otherwise."""
    made = []
    for engine, seed in (("sqlite", "7"), ("postgresql", "7"), ("sqlite", "8")):
        tradepost = commands(engine)
        tradepost.done("demo", "--seed", seed)
        made.append(sorted(map(str, contents(tradepost, tmp_path))))
    assert made[0] == made[1] != made[2]


def test_the_demo_adds_unless_it_is_told_not_to(tradepost: Commands, tmp_path: Path) -> None:
    """Run again it adds as much again, with emails and skus of their own; with --if-empty it adds nothing."""
    for words in ([], ["--if-empty"], [], ["--seed", "2"]):
        tradepost.done("demo", *words)
    assert [len(tradepost.exported(what, tmp_path)) for what in ("users", "products", "orders")] == [
        150,
        360,
        600,
    ]


@pytest.mark.parametrize(
    ("words", "counts"),
    [(("--orders", "0"), (50, 120, 0)), (("--users", "1", "--products", "1", "--orders", "3"), (1, 1, 3))],
)
def test_the_demo_can_be_small(
    tradepost: Commands, tmp_path: Path, words: tuple[str, ...], counts: tuple[int, ...]
) -> None:
    """Few of anything, or none, is fine, as long as there is somebody and something for every order."""
    tradepost.done("demo", *words)
    found = tuple(len(tradepost.exported(what, tmp_path)) for what in ("users", "products", "orders"))
    assert found == counts
    assert tradepost("demo", "--users", "0", "--orders", "1").status == 1
