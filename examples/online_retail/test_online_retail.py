"""The laws of the conversion, on rows written by hand here, and on the whole file where it is at hand."""

import csv
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from . import check, convert, load
from .__main__ import main
from .lines import HEADER, Line, Reading, Rejection, read, rows_of
from .money import pence, pounds
from .orders import Order, json_line, orders
from .products import Product, catalogue
from .users import named

MOMENT = "2010-12-01 08:26:00"
SAMPLE = [
    ["536365", "85123A", "WHITE HEART ", "6", MOMENT, "2.55", "17850.0", "United Kingdom"],
    ["536365", "85123a", "WHITE HEART ", "1", "2010-12-01 08:27:00", "6.63", "17850.0", "United Kingdom"],
    ["536365", "85123A", "", "2", MOMENT, "0.0", "17850.0", "United Kingdom"],
    ["536370", "POST", "POSTAGE", "3", "2011-01-04 10:00:00", "18.0", "", "France"],
    ["536371", "21134", "", "1", "2011-01-04 10:01:00", "0.0", "", "France"],
    ["C536379", "D", "Discount", "-1", MOMENT, "27.5", "14527.0", "United Kingdom"],
    ["A563186", "B", "Adjust bad debt", "1", MOMENT, "-11062.06", "", "United Kingdom"],
    ["536589", "21777", "damaged", "-10", MOMENT, "0.0", "", "United Kingdom"],
    ["541431", "23166", "STORAGE JAR", "74215", MOMENT, "1.04", "12346.0", "United Kingdom"],
    ["550193", "PADS", "PADS", "1", MOMENT, "0.001", "13952.0", "United Kingdom"],
    ["550194", "PADS", "PADS", "1", MOMENT, "-1.0", "13952.0", "United Kingdom"],
    ["550195", "PADS", "PADS", "one", MOMENT, "1.0", "13952.0", "United Kingdom"],
]


def kept(*rows: list[str]) -> list[Line]:
    reading = read(rows)
    assert len(reading.lines) == len(rows), reading.rejected
    return reading.lines


def row(**changes: str) -> list[str]:
    usual = dict(zip(HEADER.split(","), SAMPLE[0], strict=True))
    return list({**usual, **changes}.values())


def write_source(path: Path, rows: list[list[str]]) -> Path:
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([HEADER.split(","), *rows])
    return path


def order_lines(out: Path) -> list[dict[str, Any]]:
    text = (out / "orders.jsonl").read_text("utf-8")
    return [json.loads(line, parse_float=Decimal) for line in text.splitlines()]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_source(tmp_path / "sample.csv.gz", SAMPLE)


@pytest.fixture
def converted(source: Path, tmp_path: Path) -> Path:
    convert.convert(source, tmp_path / "out")
    return tmp_path / "out"


# Rows of any mixture, most of them usable, so that every reason meets every other.
ANY_ROW = st.tuples(
    st.sampled_from(["536365", "536366", "536367", "C536379", "A563185", ""]),
    st.sampled_from(["85123A", "85123a", "POST", "m", "M", "x" * 65, ""]),
    st.sampled_from(["WHITE HEART", " WHITE HEART", "?", "", 'A "£10" gift, boxed']),
    st.sampled_from(["1", "6", "10000", "10001", "0", "-3", "many", ""]),
    st.sampled_from([MOMENT, "2011-02-01 00:00:00", "2011-02-30 00:00:00", "yesterday"]),
    st.sampled_from(["2.55", "0.0", "0.07", "13541.33", "0.001", "-0.01", "-0.001", "NaN", "1e3", ""]),
    st.sampled_from(["17850.0", "13047.0", "", "somebody"]),
    st.sampled_from(["United Kingdom", "France", ""]),
).map(list)
ANY_ROWS = st.lists(ANY_ROW | st.lists(st.text(), max_size=9), max_size=250)


@given(ANY_ROWS)
def test_kept_and_rejected_rows_add_up_to_the_rows_read(rows: list[list[str]]) -> None:
    reading = read(rows)
    assert (
        len(reading.lines) + sum(one.rows for one in reading.rejected.values()) == reading.rows == len(rows)
    )


@given(ANY_ROWS)
def test_the_orders_hold_exactly_the_kept_lines_and_their_value(rows: list[list[str]]) -> None:
    lines = read(rows).lines
    placed = list(orders(lines))
    assert Counter(line for order in placed for line in order.lines) == Counter(lines)
    assert sum(order.totals.pence for order in placed) == sum(line.quantity * line.pence for line in lines)


@given(ANY_ROWS)
def test_every_order_is_one_that_the_service_may_take(rows: list[list[str]]) -> None:
    lines = read(rows).lines
    products = catalogue(lines)
    written = [json.loads(json_line(order, products)) for order in orders(lines)]
    assert len({order["reference"] for order in written}) == len(written)
    skus = {product.sku for product in products.values()}
    for order in written:
        assert 1 <= len(order["lineItems"]) <= 100
        assert all(item["sku"] in skus and 1 <= item["quantity"] <= 10_000 for item in order["lineItems"])
        assert all(item["unitPrice"] >= 0 and 1 <= len(item["name"]) <= 200 for item in order["lineItems"])


@given(st.integers(-(10**12), 10**12))
def test_an_amount_written_in_pounds_reads_back_as_the_same_pence(amount: int) -> None:
    assert pence(pounds(amount)) == amount


@pytest.mark.parametrize(
    ("changes", "rejection"),
    [
        ({"InvoiceNo": "C536379", "Quantity": "-1", "UnitPrice": "many"}, Rejection.CANCELLATION),
        ({"InvoiceNo": "A563186", "UnitPrice": "-11062.06"}, Rejection.ADJUSTMENT),
        ({"Quantity": "many", "UnitPrice": "0.001"}, Rejection.UNREADABLE),
        ({"InvoiceDate": "2011-02-30 00:00:00", "UnitPrice": "0.001"}, Rejection.UNREADABLE),
        ({"UnitPrice": "NaN"}, Rejection.UNREADABLE),
        ({"UnitPrice": "-0.001", "Quantity": "-1"}, Rejection.FRACTION),
        ({"Quantity": "0", "UnitPrice": "-1.0"}, Rejection.NO_QUANTITY),
        ({"Quantity": "10001", "UnitPrice": "-1.0"}, Rejection.TOO_MANY),
        ({"UnitPrice": "-0.01"}, Rejection.NEGATIVE_PRICE),
    ],
)
def test_a_row_that_several_reasons_fit_has_the_first(changes: dict[str, str], rejection: Rejection) -> None:
    assert [kind for kind, one in read([row(**changes)]).rejected.items() if one.rows] == [rejection]


def test_an_invoice_is_cut_at_a_hundred_lines_and_keeps_its_order_and_its_time() -> None:
    rows = [row(Quantity=str(1 + number)) for number in range(201)]
    rows[150] = row(Quantity="151", InvoiceDate="2010-12-01 08:27:00")
    placed = list(orders(kept(*rows)))
    assert [order.reference for order in placed] == ["536365", "536365/2", "536365/3"]
    assert [line.quantity for order in placed for line in order.lines] == list(range(1, 202))
    assert {order.placed_at for order in placed} == {"2010-12-01T08:26:00.000Z"}


def test_lines_of_an_invoice_belong_together_wherever_they_stand() -> None:
    placed = orders(kept(row(), row(InvoiceNo="536366"), row()))
    assert [(order.reference, len(order.lines)) for order in placed] == [("536365", 2), ("536366", 1)]


def test_an_invoice_that_names_two_customers_becomes_an_order_for_each() -> None:
    placed = orders(kept(row(), row(CustomerID="13047.0"), row()))
    assert [(order.reference, order.buyer.email[:14]) for order in placed] == [
        ("536365", "customer-17850"),
        ("536365/2", "customer-13047"),
    ]


def test_a_product_is_what_its_stock_code_is_most_often_called_and_costs() -> None:
    lines = kept(
        row(StockCode="84971l", Description="HOOK", UnitPrice="2.46"),
        row(StockCode="84971L", Description="LARGE HOOK", UnitPrice="1.25"),
        row(StockCode="84971L", Description="LARGE HOOK", UnitPrice="1.25"),
        row(StockCode="84971L", Description="", UnitPrice="0.0"),
        row(StockCode="84971L", Description="", UnitPrice="0.0"),
        row(StockCode="84971L", Description="", UnitPrice="0.0"),
    )
    hook = Product("84971L", "LARGE HOOK", 125, "2010-12-01T08:26:00.000Z")
    assert catalogue(lines) == {"84971L": hook, "84971l": hook}


def test_a_stock_code_without_description_or_price_is_a_free_product_named_after_it() -> None:
    product = catalogue(kept(row(StockCode="21134", Description=" ", UnitPrice="0.0")))["21134"]
    assert (product.name, product.pence) == ("21134", 0)


def test_a_line_keeps_the_name_and_price_of_its_sale_and_borrows_a_missing_name() -> None:
    lines = kept(row(), row(), row(Description="RED HEART", UnitPrice="0.1"), row(Description=""))
    (order,) = orders(lines)
    items = json.loads(json_line(order, catalogue(lines)), parse_float=str)["lineItems"]
    assert [(item["name"], item["unitPrice"]) for item in items[1:]] == [
        ("WHITE HEART", "2.55"),
        ("RED HEART", "0.10"),
        ("WHITE HEART", "2.55"),
    ]


def test_customers_of_the_file_have_names_of_their_own() -> None:
    users = [named(number) for number in range(12346, 18288)]
    assert len({user.name for user in users}) == len({user.email for user in users}) == len(users)


def test_the_sample_becomes_the_files_that_import_takes(converted: Path) -> None:
    assert (converted / "users.csv").read_text("utf-8").splitlines() == [
        "name,email,createdAt",
        f"{named(17850).name},customer-17850@online-retail.example,2010-12-01T08:26:00.000Z",
        '"Guest, France",guest-france@online-retail.example,2011-01-04T10:00:00.000Z',
    ]
    assert (converted / "products.csv").read_text("utf-8").splitlines() == [
        "sku,name,description,price,currency,stock,status,createdAt",
        "85123A,WHITE HEART,,2.55,GBP,,ACTIVE,2010-12-01T08:26:00.000Z",
        "POST,POSTAGE,,18.00,GBP,,ACTIVE,2011-01-04T10:00:00.000Z",
        "21134,21134,,0.00,GBP,,ACTIVE,2011-01-04T10:01:00.000Z",
    ]
    assert [
        (order["reference"], order["status"], len(order["lineItems"])) for order in order_lines(converted)
    ] == [
        ("536365", "FULFILLED", 3),
        ("536370", "FULFILLED", 1),
        ("536371", "FULFILLED", 1),
    ]


def test_the_report_explains_every_line_and_every_invoice(converted: Path) -> None:
    report = json.loads((converted / "report.json").read_text("utf-8"))
    counts, rejected = report["counts"], report["rejectedLines"]
    assert [one["lines"] for one in rejected] == [1] * len(Rejection)
    assert counts["linesRead"] == len(SAMPLE) == counts["linesKept"] + sum(one["lines"] for one in rejected)
    assert counts["invoicesRead"] == counts["invoicesKept"] + sum(report["rejectedInvoices"].values())
    assert report["figures"]["overall"] == {"orders": 3, "lines": 5, "quantity": 13, "pence": 7593}
    assert report["figures"]["months"]["2011-01"] == {"orders": 2, "lines": 2, "quantity": 4, "pence": 5400}


def test_converting_again_writes_the_same_bytes(source: Path, converted: Path) -> None:
    before = {path.name: path.read_bytes() for path in converted.iterdir()}
    convert.convert(source, converted)
    assert {path.name: path.read_bytes() for path in converted.iterdir()} == before


@pytest.mark.parametrize("content", [b"", b"name,email\n", b"\xff\xfe", b"\x1f\x8bcut"])
def test_a_file_that_is_not_the_data_set_is_refused_by_name(content: bytes, tmp_path: Path) -> None:
    for name in ("other.csv", "other.csv.gz"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SystemExit, match=name):
            main(["convert", str(tmp_path / name), str(tmp_path / "out")])


# A stand-in for the service, which holds what was converted.


def served(out: Path) -> dict[str, list[dict[str, Any]]]:
    """The two collections as the service would answer them after the import of `out`."""
    with (out / "users.csv").open(encoding="utf-8", newline="") as file:
        users = [{"id": f"user-{user['email']}", "email": user["email"]} for user in csv.DictReader(file)]
    return {"/v1/users": users, "/v1/orders": [served_order(order) for order in order_lines(out)]}


def served_order(order: dict[str, Any]) -> dict[str, Any]:
    total = sum(item["quantity"] * item["unitPrice"] for item in order["lineItems"])
    items = [{**item, "unitPrice": float(item["unitPrice"])} for item in order["lineItems"]]
    return {
        "userId": f"user-{order['userEmail']}",
        "status": order["status"],
        "currency": "GBP",
        "createdAt": order["createdAt"],
        "total": float(total),
        "lineItems": items,
    }


@contextmanager
def serving(collections: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """Pages of two, whatever limit is asked; the cursor is where the next page starts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            start = int(parse_qs(url.query).get("cursor", ["0"])[0])
            items = collections[url.path]
            following = str(start + 2) if items[start + 2 :] else None
            self.send_response(200 if self.headers["Authorization"] == "Bearer tp_key" else 401)
            self.end_headers()
            self.wfile.write(json.dumps({"items": items[start : start + 2], "next": following}).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def checked(out: Path, collections: dict[str, list[dict[str, Any]]], key: str = "tp_key") -> int:
    with serving(collections) as url:
        return check.main([str(out), "--url", url, "--key", key])


def test_check_finds_no_difference_where_everything_was_imported(
    converted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert checked(converted, served(converted)) == 0
    assert "DIFF" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"total": 21.92}, "total GBP"),
        ({"createdAt": "2011-03-01T00:00:00.000Z"}, "2011-03: orders"),
        ({"userId": "user-guest-france@online-retail.example"}, "guest-france@online-retail.example"),
        ({"status": "PENDING"}, "orders not FULFILLED"),
        ({"lineItems": []}, "all: lines"),
    ],
)
def test_check_finds_an_order_that_differs(
    change: dict[str, Any], difference: str, converted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collections = served(converted)
    collections["/v1/orders"][0].update(change)
    assert checked(converted, collections) == 1
    assert any(difference in line for line in capsys.readouterr().out.splitlines() if line.startswith("DIFF"))


def test_check_finds_an_order_that_is_missing_or_there_twice(converted: Path) -> None:
    collections = served(converted)
    assert checked(converted, {**collections, "/v1/orders": collections["/v1/orders"][1:]}) == 1
    assert checked(converted, {**collections, "/v1/orders": collections["/v1/orders"] * 2}) == 1


def test_check_says_what_the_service_refused(converted: Path) -> None:
    with pytest.raises(SystemExit, match="answered 401"):
        checked(converted, served(converted), key="tp_other")


# A stand-in for the command, which writes down how it was called.


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    command = tmp_path / "bin" / "tradepost"
    command.parent.mkdir()
    command.write_text(
        f'#!/bin/sh\necho "$TRADEPOST_DATABASE_URL $@" >> "{tmp_path}/calls"\nexit ${{FAIL:-0}}\n'
    )
    command.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(command.with_name("python")))
    return tmp_path / "calls"


def test_load_migrates_and_then_imports_users_products_and_orders(
    source: Path, calls: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "kept"
    assert load.main(["--database-url", "sqlite:///x.db", "--out", str(out), str(source)]) == 0
    assert calls.read_text().splitlines() == [
        "sqlite:///x.db migrate",
        f"sqlite:///x.db import users {out}/users.csv",
        f"sqlite:///x.db import products {out}/products.csv",
        f"sqlite:///x.db import orders {out}/orders.jsonl",
    ]
    assert "\ntotal " in capsys.readouterr().out


def test_load_stops_at_the_first_step_that_fails(
    source: Path, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIL", "3")
    with pytest.raises(SystemExit, match="migrate ended with exit code 3"):
        load.main([str(source), "--database-url", "sqlite:///x.db"])
    assert len(calls.read_text().splitlines()) == 1


# The whole file.

WHOLE = convert.source_path()
MISSING = (
    f"the Online Retail file is not at {convert.SOURCE_VARIABLE}, nor as ../shared/data/online-retail.csv.gz"
)


@pytest.fixture(scope="module")
def whole() -> tuple[Reading, list[Order]]:
    if not WHOLE.is_file():
        pytest.skip(MISSING)
    reading = read(rows_of(WHOLE))
    return reading, list(orders(reading.lines))


def test_the_whole_file_is_converted_as_its_readme_says(whole: tuple[Reading, list[Order]]) -> None:
    reading, placed = whole
    assert reading.rows == 541_909
    assert {kind.kind: one.rows for kind, one in reading.rejected.items() if one.rows} == {
        "cancellation": 9_288,
        "adjustment": 3,
        "fraction of a penny": 4,
        "quantity not above 0": 1_336,
        "quantity above 10,000": 3,
    }
    assert (len(reading.lines), len(placed)) == (531_275, 21_899)
    assert len({line.invoice for line in reading.lines} | reading.reasons_by_invoice.keys()) == 25_900


def test_the_whole_file_keeps_what_a_second_plain_reading_keeps(whole: tuple[Reading, list[Order]]) -> None:
    _, placed = whole
    count, pieces, total = 0, 0, Decimal(0)
    with gzip.open(WHOLE, "rt", encoding="utf-8", newline="") as file:
        for each in csv.DictReader(file):
            quantity, price = int(each["Quantity"]), Decimal(each["UnitPrice"])
            sale = each["InvoiceNo"].isdecimal() and 1 <= quantity <= 10_000
            if sale and price >= 0 and price == round(price, 2):
                count, pieces, total = count + 1, pieces + quantity, total + quantity * price
    sums = [order.totals for order in placed]
    assert (sum(one.lines for one in sums), sum(one.quantity for one in sums)) == (count, pieces)
    assert sum(one.pence for one in sums) == total * 100
