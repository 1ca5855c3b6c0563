"""What `tradepost import` takes, and what it makes of it."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Commands
from tests.cli.files import (
    id_of,
    json_lines,
    ms_of,
    order,
    packed,
    product,
    table,
    user,
    with_people_and_goods,
)

FORMATS = pytest.mark.parametrize("form", ["csv", "jsonl"])
INSTANT = "2024-02-29T23:59:59.999Z"


def file_of(form: str, path: Path, *rows: dict[str, Any]) -> Path:
    return (table if form == "csv" else json_lines)(path / f"rows.{form}", list(rows))


def test_progress_is_a_bar_on_a_terminal_and_silent_lines_elsewhere(
    tradepost: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard error shows a bar to somebody who looks at it, and nothing to a log that a moment will fill."""
    file = json_lines(tmp_path / "users.jsonl", [user(n) for n in range(20)])
    assert tradepost("import", "users", file).err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert "100%" in tradepost("import", "users", file).err


@FORMATS
def test_users_come_in_with_what_their_rows_say(tradepost: Commands, tmp_path: Path, form: str) -> None:
    """A user has the members of its row, the defaults for others, and an id of the instant of createdAt."""
    rows = [
        user(1, createdAt="2024-03-01T01:59:59.999+02:00", status="DEACTIVATED"),
        user(2, email="ÄDA@bücher.example"),
    ]
    rows[1] |= {"status": "", "createdAt": ""} if form == "csv" else {}
    assert "2 read, 2 imported" in tradepost.done("import", "users", file_of(form, tmp_path, *rows))
    first, second = tradepost.exported("users", tmp_path)
    assert (first["name"], first["status"], first["createdAt"]) == ("Ada 1", "DEACTIVATED", INSTANT)
    assert (second["email"], second["status"]) == ("ÄDA@bücher.example", "ACTIVE")
    assert ms_of(first["id"]) == 1_709_251_199_999


@FORMATS
def test_products_come_in_with_what_their_rows_say(tradepost: Commands, tmp_path: Path, form: str) -> None:
    """A product has the members of its row: exact prices, stock or none, a text with anything in it."""
    text = 'Says "light";\nand, more: naïve 灯\r\n'
    rows = [
        product(1, description=text, stock=7, status="ARCHIVED", createdAt=INSTANT),
        product(2, price=1200, currency="JPY", createdAt="2025-01-01"),
    ]
    tradepost.done("import", "products", file_of(form, tmp_path, *rows))
    first, second = tradepost.exported("products", tmp_path)
    assert (first["description"], first["price"], first["stock"], first["status"]) == (
        text,
        19.99,
        7,
        "ARCHIVED",
    )
    assert (second["description"], second["price"], second["stock"]) == (None, 1200, None)
    assert second["createdAt"] == "2025-01-01T00:00:00.000Z"


def test_what_is_there_already_is_left_alone(tradepost: Commands, tmp_path: Path) -> None:
    """A file imported twice changes nothing the second time, nor does a row that is known by its own name."""
    with_people_and_goods(tradepost, tmp_path)
    orders = json_lines(tmp_path / "orders.jsonl", [order(1), order(2), order(1)])
    assert "3 read, 2 imported, 1 already there" in tradepost.done("import", "orders", orders)
    before = [tradepost.exported(what, tmp_path) for what in ("users", "products", "orders")]
    assert "3 read, 0 imported, 3 already there" in tradepost.done("import", "orders", orders)
    again = json_lines(tmp_path / "again.jsonl", [user(1, email="ADA1@SHOP.EXAMPLE", name="Other")])
    assert "0 imported, 1 already there" in tradepost.done("import", "users", again)
    again = json_lines(tmp_path / "again.jsonl", [product(1, price=1)])
    assert "0 imported, 1 already there" in tradepost.done("import", "products", again)
    assert [tradepost.exported(what, tmp_path) for what in ("users", "products", "orders")] == before


def test_an_export_of_the_api_can_be_imported(tradepost: Commands, tmp_path: Path) -> None:
    """A representation that the API shows is taken as it stands; what the service sets itself is ignored."""
    shown = user(1, id=id_of(INSTANT), createdAt=INSTANT, updatedAt="2026-01-01T00:00:00Z")
    tradepost.done("import", "users", json_lines(tmp_path / "users.jsonl", [shown]))
    assert [each["id"] for each in tradepost.exported("users", tmp_path)] == [shown["id"]]


def test_a_table_of_a_spreadsheet_is_taken(tradepost: Commands, tmp_path: Path) -> None:
    """A byte order mark, semicolons, spaces around names and empty lines do not matter."""
    file = tmp_path / "users.csv"
    file.write_text(' name ; email \r\n\r\nAda;"ada@shop.example"\r\n\r\nBo;bo@shop.example', "utf-8-sig")
    assert "2 read, 2 imported" in tradepost.done("import", "users", file)


def test_the_format_is_that_of_the_name_whatever_is_packed(tradepost: Commands, tmp_path: Path) -> None:
    """A gzipped file is known by its content, its format by its name, or by what is asked for."""
    first = packed(table(tmp_path / "users.csv", [user(1)]))
    second = packed(json_lines(tmp_path / "more.ndjson", [user(2)])).rename(tmp_path / "more.dat")
    assert "1 imported" in tradepost.done("import", "users", first)
    assert "1 imported" in tradepost.done("import", "users", second, "--format", "jsonl")
