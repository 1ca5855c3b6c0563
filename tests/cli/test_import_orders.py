"""Orders that `tradepost import` takes: history, recorded as it was."""

from pathlib import Path

from tests.cli.conftest import Commands
from tests.cli.files import cells, json_lines, ms_of, order, table, with_people_and_goods

INSTANT = "2024-02-29T23:59:59.999Z"


def test_an_order_is_recorded_as_it_was(tradepost: Commands, tmp_path: Path) -> None:
    """Status, instant, prices and names are the row's; what it does not tell is the product's of today."""
    with_people_and_goods(tradepost, tmp_path, status="ARCHIVED")
    lines = (
        {"sku": "S-1", "quantity": 3, "unitPrice": 7.5, "name": "Old name"},
        {"sku": "S-2", "quantity": 9},
    )
    file = json_lines(tmp_path / "orders.jsonl", [order(1, *lines, status="CANCELLED", createdAt=INSTANT)])
    tradepost.done("import", "orders", file)
    (found,) = tradepost.exported("orders", tmp_path)
    assert (found["reference"], found["status"], found["currency"], found["createdAt"]) == (
        "R-1",
        "CANCELLED",
        "GBP",
        INSTANT,
    )
    assert [(each["name"], each["unitPrice"], each["quantity"]) for each in found["lineItems"]] == [
        ("Old name", 7.5, 3),
        ("Lantern 2", 5, 9),
    ]
    assert {ms_of(each["id"]) for each in [found, *found["lineItems"]]} == {1_709_251_199_999}


def test_history_takes_no_stock(tradepost: Commands, tmp_path: Path) -> None:
    """Importing an order changes no product, however much it orders."""
    with_people_and_goods(tradepost, tmp_path)
    before = tradepost.exported("products", tmp_path)
    file = json_lines(tmp_path / "orders.jsonl", [order(1, {"sku": "S-2", "quantity": 10_000})])
    tradepost.done("import", "orders", file)
    assert tradepost.exported("products", tmp_path) == before


def test_rows_of_a_table_make_one_order(tradepost: Commands, tmp_path: Path) -> None:
    """CSV rows that follow one another under one reference are the lines of one order, in their order."""
    with_people_and_goods(tradepost, tmp_path)
    lines = [("R-1", "S-2", 1), ("R-1", "S-1", 2), ("R-2", "S-1", 3), ("R-1/2", "S-1", 4)]
    rows = [
        {
            "reference": name,
            "userEmail": "ADA1@shop.example",
            "createdAt": INSTANT,
            "sku": sku,
            "quantity": count,
        }
        for name, sku, count in lines
    ]
    for row in rows[1:2]:  # what stands in the first row of an order need not stand in the others
        row |= {"userEmail": "", "createdAt": ""}
    assert "3 read, 3 imported" in tradepost.done("import", "orders", table(tmp_path / "o.csv", rows))
    found = {each["reference"]: each for each in tradepost.exported("orders", tmp_path)}
    assert [(line["sku"], line["quantity"]) for line in found["R-1"]["lineItems"]] == [("S-2", 1), ("S-1", 2)]
    assert len(found["R-2"]["lineItems"]) == len(found["R-1/2"]["lineItems"]) == 1


BAD_ORDERS = {
    "userEmail must be the email of an existing user": order(1, userEmail="nobody@shop.example"),
    "userId must be the id of an existing user": {
        **order(2, userId="018df7c5-6f3f-7000-8000-000000000001"),
        "userEmail": None,
    },
    "userEmail is required": {**order(3), "userEmail": None},
    "userEmail is redundant": order(4, userId="018df7c5-6f3f-7000-8000-000000000001"),
    "reference is required": order(5, reference=None),
    "lineItems[0].sku must be the sku of an existing product": order(6, {"sku": "S-9", "quantity": 1}),
    "lineItems[0].sku is required": order(7, {"quantity": 1}),
    "lineItems[1] is priced in EUR": order(8, {"sku": "S-1", "quantity": 1}, {"sku": "S-3", "quantity": 1}),
    "lineItems[0].unitPrice must have at most 2 decimals": order(
        9, {"sku": "S-1", "quantity": 1, "unitPrice": 1.001}
    ),
    "lineItems[0].unitPrice must be at most": order(10, {"sku": "S-1", "quantity": 1, "unitPrice": 1e12}),
    "lineItems[0].quantity must be an integer from 1 to 10000": order(11, {"sku": "S-1", "quantity": 10_001}),
    "lineItems must be an array of 1 to 100 items": {**order(12), "lineItems": []},
    "currency must be": order(13, currency="QQQ"),
    "shippingAddressId must be the id of one of the user's addresses": order(
        14, shippingAddressId="018df7c5-6f3f-7000-8000-000000000001"
    ),
    "shippingAddress.country": order(
        15,
        shippingAddress={"recipient": "A", "line1": "1", "city": "B", "postalCode": "1", "country": "XX"},
    ),
    "status must be one of PENDING, ": order(16, status="SENT"),
    "lineItems add up to more": order(17, *({"sku": "S-1", "quantity": 10_000, "unitPrice": 1e9},) * 2),
    "color is not a member": order(18, color="red"),
    "lineItems[0].id must be": order(19, {"sku": "S-1", "quantity": 1, "id": "x"}),
}


def test_a_bad_order_is_rejected_whole_with_its_reason(tradepost: Commands, tmp_path: Path) -> None:
    """An order that breaks a rule leaves no trace, whatever else is fine about it; the others come in."""
    with_people_and_goods(tradepost, tmp_path)
    file = json_lines(tmp_path / "orders.jsonl", [order(0), *BAD_ORDERS.values(), order(99)])
    ended = tradepost("import", "orders", file)
    assert ended.status == 1
    assert f"2 imported, 0 already there, {len(BAD_ORDERS)} rejected" in ended.out
    for line, what in enumerate(BAD_ORDERS, start=2):
        assert f"line {line}: {what}" in ended.err
    assert {each["reference"] for each in tradepost.exported("orders", tmp_path)} == {"R-0", "R-99"}


def test_an_order_may_tell_a_currency_that_its_products_no_longer_have(
    tradepost: Commands, tmp_path: Path
) -> None:
    """History has its own currency where it says so, with prices for every line."""
    with_people_and_goods(tradepost, tmp_path)
    lines = ({"sku": "S-1", "quantity": 1, "unitPrice": 900}, {"sku": "S-3", "quantity": 1, "unitPrice": 100})
    rows = [order(1, *lines, currency="JPY"), order(2, {"sku": "S-1", "quantity": 1}, currency="JPY")]
    ended = tradepost("import", "orders", json_lines(tmp_path / "orders.jsonl", rows))
    assert "line 2: lineItems[0] is priced in GBP, but the order is in JPY" in ended.err
    assert [each["currency"] for each in tradepost.exported("orders", tmp_path)] == ["JPY"]


def test_the_rows_of_an_order_have_to_stand_together(tradepost: Commands, tmp_path: Path) -> None:
    """Rows that come back to an order that has ended, or contradict its first row, are rejected, not lost."""
    with_people_and_goods(tradepost, tmp_path)
    row = {"userEmail": "ada1@shop.example", "createdAt": INSTANT, "sku": "S-1", "quantity": 1}
    other = row | {"userEmail": "ada2@shop.example"}
    rows = [row | {"reference": name} for name in ("R-1", "R-2", "R-1")] + [
        each | {"reference": "R-3"} for each in (row, other)
    ]
    file = table(tmp_path / "orders.csv", rows)
    ended = tradepost("import", "orders", file)
    assert "4 read, 2 imported, 0 already there, 2 rejected" in ended.out
    assert "line 4: the row belongs to the order of line 2" in ended.err
    assert "line 5: userEmail differs from line 6" in ended.err
    assert [each["reference"] for each in cells(Path(f"{file}.rejects.csv"))] == ["R-1", "R-3", "R-3"]


def test_an_address_is_imported_once(tradepost: Commands, tmp_path: Path) -> None:
    """An address belongs to the user it names, and is there when the same user has the same address."""
    with_people_and_goods(tradepost, tmp_path)
    home = {
        "recipient": "Ada",
        "line1": "1 Mill Lane",
        "city": "Leeds",
        "postalCode": "LS1 1AA",
        "country": "GB",
    }
    rows = [home | {"userEmail": f"ada{n}@shop.example"} for n in (1, 2, 1, 9)]
    ended = tradepost("import", "addresses", table(tmp_path / "addresses.csv", rows))
    assert "4 read, 2 imported, 1 already there, 1 rejected" in ended.out
    first, _ = tradepost.exported("addresses", tmp_path)
    orders = json_lines(tmp_path / "orders.jsonl", [order(1, shippingAddressId=first["id"])])
    tradepost.done("import", "orders", orders)
    (sent,) = tradepost.exported("orders", tmp_path)
    assert sent["shippingAddress"]["line1"] == "1 Mill Lane"
