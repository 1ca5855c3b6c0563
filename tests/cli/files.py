"""Files to import."""

import csv
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.cli.conftest import Commands
from tradepost.clock import parse_instant

Row = Mapping[str, Any]


def json_lines(path: Path, rows: Iterable[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def table(path: Path, rows: Sequence[Row]) -> Path:
    """A CSV file with the columns that any of the rows has."""
    columns = dict.fromkeys(name for row in rows for name in row)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(columns))
        writer.writeheader()
        writer.writerows(rows)
    return path


def with_people_and_goods(tradepost: Commands, path: Path, **of_product: Any) -> None:
    """Two users and three products, in a database: what orders can name."""
    tradepost.done("import", "users", json_lines(path / "users.jsonl", [user(1), user(2)]))
    goods = [product(1, **of_product), product(2, price=5, stock=3), product(3, currency="EUR")]
    tradepost.done("import", "products", json_lines(path / "products.jsonl", goods))


def packed(path: Path) -> Path:
    """The same file, gzipped."""
    made = path.with_name(f"{path.name}.gz")
    made.write_bytes(gzip.compress(path.read_bytes()))
    return made


def id_of(instant: str, number: int = 1) -> str:
    """An id as one created at that instant has it."""
    ms = f"{parse_instant(instant):012x}"
    return f"{ms[:8]}-{ms[8:]}-7000-8000-{number:012x}"


def ms_of(entity_id: str) -> int:
    """The instant that an id carries."""
    return int(entity_id[:8] + entity_id[9:13], 16)


def cells(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def user(number: int, **members: Any) -> dict[str, Any]:
    return {"name": f"Ada {number}", "email": f"ada{number}@shop.example", **members}


def product(number: int, **members: Any) -> dict[str, Any]:
    return {"sku": f"S-{number}", "name": f"Lantern {number}", "price": 19.99, "currency": "GBP", **members}


def order(number: int, *lines: Row, **members: Any) -> dict[str, Any]:
    items = lines or ({"sku": "S-1", "quantity": 2},)
    own = {"reference": f"R-{number}", "userEmail": "ada1@shop.example", "status": "FULFILLED"}
    return {**own, "createdAt": "2025-03-04T05:06:07.089Z", "lineItems": list(items), **members}
