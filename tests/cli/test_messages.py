"""What an import rejects is told in words of the file, never of Python or of a library."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import shop
from tests.cli.conftest import Commands
from tests.cli.files import json_lines, table
from tests.cli.test_import_orders import BAD_ORDERS
from tests.laws.test_messages import FOREIGN, VALUES
from tradepost.domain.input import names_of
from tradepost.transfer.row import AddressRow, OrderRow, ProductRow, UserRow


@pytest.fixture
def tradepost(commands: Callable[[str], Commands]) -> Commands:
    """The command line on one engine: messages do not depend on the storage."""
    return commands("sqlite")


GOOD: dict[str, dict[str, Any]] = {
    "users": {"name": "Ada", "email": "ada@shop.example"},
    "products": {"sku": "s", "name": "n", "price": 1, "currency": "GBP"},
    "addresses": {**shop.address_body(), "userEmail": "ada@shop.example"},
    "orders": next(iter(BAD_ORDERS.values())),
}
BROKEN = b"\n".join([b"{", b"[]", b"\xff", b"7", b'{"name": "\xff"}', b'{"price": 1e400}'])


ROWS = {"users": UserRow, "products": ProductRow, "addresses": AddressRow, "orders": OrderRow}


def rows(what: str) -> list[dict[str, Any]]:
    """Rows with every member in turn set to values of each kind."""
    return [{**GOOD[what], name: value} for name in names_of(ROWS[what]).values() for value in VALUES]


def cells(what: str) -> list[dict[str, Any]]:
    """The same as a table has them: the lines of an order have columns of their own."""
    line = {"sku": "S-1", "quantity": 2} if what == "orders" else {}
    good = {name: value for name, value in GOOD[what].items() if name != "lineItems"} | line
    names = [name for name in names_of(ROWS[what]).values() if name not in ("lineItems", "total", "userId")]
    values = [value for value in VALUES if value not in ("\0", "x" * 20_000)]
    made = [{**good, name: value} for name in [*names, *line] for value in values]
    return [row | ({"reference": f"R-{number}"} if line else {}) for number, row in enumerate(made)]


@pytest.mark.parametrize("what", GOOD)
def test_a_rejected_line_is_told_in_words_of_json(tradepost: Commands, tmp_path: Path, what: str) -> None:
    """Every member with values of each kind, unknown members, and lines that are no JSON object."""
    file, rejects = tmp_path / "bad.jsonl", tmp_path / "rejects.jsonl"
    json_lines(file, [*rows(what), {**GOOD[what], "unknown": 1}, *BAD_ORDERS.values()])
    file.write_bytes(file.read_bytes() + BROKEN)
    ended = tradepost("import", what, file, "--rejects", rejects)
    reasons = {json.loads(line)["reason"] for line in rejects.read_text("utf-8", "replace").splitlines()}
    assert len(reasons) > 10
    assert {text for text in (*reasons, ended.out, ended.err) if FOREIGN.search(text)} == set()


@pytest.mark.parametrize("what", GOOD)
def test_a_rejected_row_is_told_in_words_of_the_table(tradepost: Commands, tmp_path: Path, what: str) -> None:
    """The same for cells, and for rows that are no CSV."""
    file = table(tmp_path / "bad.csv", cells(what))
    file.write_bytes(file.read_bytes() + b'"a"b\n\xff,\n,,,,,,,,,,,,,\n"')
    ended = tradepost("import", what, file, "--rejects", tmp_path / "rejects.csv")
    reasons = (tmp_path / "rejects.csv").read_text("utf-8", errors="replace")
    assert FOREIGN.search(ended.out + ended.err) is None
    told = {line.rpartition(",")[2] for line in reasons.splitlines()}
    assert len(told) > 5
    assert {text for text in told if FOREIGN.search(text)} == set()
