"""convert: the source in; users.csv, products.csv, orders.jsonl and report.json out."""

import csv
import json
import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path

from .lines import read, rows_of
from .money import CURRENCY, pounds
from .orders import json_line, orders
from .products import Product, catalogue
from .report import Report, report_on
from .users import NewUser, first_bought

SOURCE_VARIABLE = "TRADEPOST_ONLINE_RETAIL"
IMPORTS = {"users": "users.csv", "products": "products.csv", "orders": "orders.jsonl"}  # in the order of need
REPORT = "report.json"
BESIDE_THE_PROJECT = Path(__file__).parents[3] / "shared" / "data" / "online-retail.csv.gz"


def source_path() -> Path:
    return Path(os.environ.get(SOURCE_VARIABLE) or BESIDE_THE_PROJECT)


def add_source(parser: ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="SOURCE",
        nargs="?",
        type=Path,
        default=source_path(),
        help=f"the data set, .csv or .csv.gz; else {SOURCE_VARIABLE}, else the file of ../shared/data",
    )


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(prog="python -m examples.online_retail convert", description=__doc__)
    add_source(parser)
    parser.add_argument("out", metavar="OUT_DIR", type=Path)
    chosen: Namespace = parser.parse_intermixed_args(arguments)
    print(convert(chosen.source, chosen.out))
    print(f"\n{chosen.out}: written in {time.process_time():.1f} s of CPU time")
    return 0


def convert(source: Path, out: Path) -> Report:
    reading = read(rows_of(source))
    products = catalogue(reading.lines)
    placed = list(orders(reading.lines))
    users = first_bought((order.buyer, order.placed_at) for order in placed)
    out.mkdir(parents=True, exist_ok=True)
    write_users(out / IMPORTS["users"], users)
    write_products(out / IMPORTS["products"], dict.fromkeys(products.values()))
    with (out / IMPORTS["orders"]).open("w", encoding="utf-8") as file:
        file.writelines(json_line(order, products) for order in placed)
    report = report_on(reading, placed, users, products)
    (out / REPORT).write_text(json.dumps(report.to_json(), indent=2) + "\n", encoding="utf-8")
    return report


def write_users(path: Path, users: Iterable[NewUser]) -> None:
    rows = ((user.name, user.email, created_at) for user, created_at in users)
    write_csv(path, ("name", "email", "createdAt"), rows)


def write_products(path: Path, products: Iterable[Product]) -> None:
    """Without descriptions and stock, which the file does not tell: an empty stock is not tracked."""
    columns = ("sku", "name", "description", "price", "currency", "stock", "status", "createdAt")
    rows = (
        (product.sku, product.name, "", pounds(product.pence), CURRENCY, "", "ACTIVE", product.created_at)
        for product in products
    )
    write_csv(path, columns, rows)


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
