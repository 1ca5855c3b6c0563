"""What `tradepost export` writes is what there is, in reading order, and can be imported elsewhere."""

import gzip
import itertools
import json
import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import shop
from tests.cli.conftest import Commands
from tests.cli.files import json_lines, order, user, with_people_and_goods
from tests.flows.process import COMMAND, environment
from tests.service import Service

KINDS = ("users", "addresses", "products", "orders")
OTHER = {"sqlite": "postgresql", "postgresql": "sqlite"}
numbers = itertools.count()

# Texts with all that a file could stumble over. NUL and lone surrogates are no text to the service either.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30)
instants = st.datetimes(datetime(1971, 1, 1), datetime(2026, 1, 1)).map(  # noqa: DTZ001 (the Z is below)
    lambda moment: moment.isoformat(timespec="milliseconds") + "Z"
)
DEAREST = 10**7
DECIMALS = {"GBP": 2, "JPY": 0, "KWD": 3, "CLF": 4}


@st.composite
def prices(draw: st.DrawFn, currency: str) -> float:
    in_one = 10 ** DECIMALS[currency]
    return draw(st.integers(0, DEAREST * in_one)) / float(in_one)


@st.composite
def shops(draw: st.DrawFn) -> dict[str, list[dict[str, Any]]]:
    """A user, an address, some products of one currency and an order, as files tell them."""
    number, currency = next(numbers), draw(st.sampled_from(sorted(DECIMALS)))
    one = user(
        number,
        name=draw(texts),
        createdAt=draw(instants),
        status=draw(st.sampled_from(["ACTIVE", "DEACTIVATED"])),
    )
    home = {name: draw(texts) for name in ("recipient", "line1", "city")} | {
        "postalCode": "1",
        "country": "GB",
    }
    skus = [f"{number}-{index}-{draw(texts)}" for index in range(draw(st.integers(1, 3)))]
    goods = [
        {
            "sku": sku,
            "name": draw(texts),
            "description": draw(st.none() | texts),
            "price": draw(prices(currency)),
            "currency": currency,
            "stock": draw(st.none() | st.integers(0, 2**31 - 1)),
            "status": draw(st.sampled_from(["ACTIVE", "ARCHIVED"])),
            "createdAt": draw(instants),
        }
        for sku in skus
    ]
    lines = [
        {
            "sku": sku,
            "quantity": draw(st.integers(1, 10_000)),
            "unitPrice": draw(prices(currency)),
            "name": draw(texts),
        }
        for sku in skus
    ]
    status = draw(st.sampled_from(["PENDING", "FULFILLED", "CANCELLED"]))
    bought = order(number, *lines, userEmail=one["email"], status=status, createdAt=draw(instants))
    bought["reference"] += draw(texts)
    if draw(st.booleans()):
        bought["shippingAddress"] = home | {"line2": draw(st.none() | texts)}
    return {
        "users": [one],
        "addresses": [home | {"userEmail": one["email"]}],
        "products": goods,
        "orders": [bought],
    }


def moved(here: Commands, there: Commands, path: Path, form: str) -> None:
    """Moves all there is to another database, and checks that it looks the same from there."""
    files = {what: path / f"moved-{what}.{form}" for what in KINDS}
    for what, file in files.items():
        here.done("export", what, file)
        there.done("import", what, file)
    for what, file in files.items():
        again = path / f"again.{form}"
        there.done("export", what, again)
        assert again.read_bytes() == file.read_bytes()


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_an_export_imported_elsewhere_is_exported_the_same(
    commands: Callable[[str], Commands], engine: str, tmp_path: Path, form: str
) -> None:
    """Export, import into the other engine, export again: the same bytes, whatever the shop holds."""
    here, there = commands(engine), commands(OTHER[engine])

    @settings(max_examples=10, suppress_health_check=list(HealthCheck))
    @given(shops())
    def same(shop_: dict[str, list[dict[str, Any]]]) -> None:
        for what in KINDS:
            here.done("import", what, json_lines(tmp_path / f"{what}.jsonl", shop_[what]))
        moved(here, there, tmp_path, form)

    same()


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_orders_go_along_with_whoever_was_deleted(
    new_service: Callable[..., Service],
    commands: Callable[[str], Commands],
    engine: str,
    tmp_path: Path,
    form: str,
) -> None:
    """Deleted users and products go along where orders name them, and are deleted there too; others do not."""
    service = new_service(engine)
    keeper, gone = shop.a_user(service), shop.a_user(service)
    sold, unsold = shop.a_product(service), shop.a_product(service)
    home = shop.an_address(service, keeper)
    for buyer, sent in ((keeper, {"shippingAddressId": home["id"]}), (gone, {})):
        shop.an_order(service, (sold, 2), user=buyer, **sent)
    for path in (f"users/{gone['id']}", f"products/{sold['id']}", f"products/{unsold['id']}"):
        assert service.call("DELETE", f"/v1/{path}").status == 204
    arrived = new_service(OTHER[engine])
    here, there = commands(engine), commands(OTHER[engine])
    here.url, there.url = service.database_url, arrived.database_url
    moved(here, there, tmp_path, form)
    assert arrived.get(f"/v1/users/{gone['id']}").status == 404
    assert arrived.get(f"/v1/products/{sold['id']}").status == 404
    ours, theirs = (
        {each["id"]: each for each in one.get("/v1/orders").json["items"]} for one in (service, arrived)
    )
    assert ours.keys() == theirs.keys()
    assert all(theirs[each]["lineItems"] == ours[each]["lineItems"] for each in ours)


def test_pages_follow_one_another_without_a_gap(tradepost: Commands, tmp_path: Path) -> None:
    """More than a page of entities is written whole, each once, in the order of their ids."""
    rows = [user(n, createdAt=f"20{n % 25:02}-01-01") for n in range(1234)]
    tradepost.done("import", "users", json_lines(tmp_path / "users.jsonl", rows))
    ids = [each["id"] for each in tradepost.exported("users", tmp_path)]
    assert len(ids) == 1234
    assert ids == sorted(set(ids))


def test_an_export_goes_to_standard_output_or_a_packed_file(tradepost: Commands, tmp_path: Path) -> None:
    """The same bytes, on standard output, in a file, and in a gzipped one that is the same each time."""
    with_people_and_goods(tradepost, tmp_path)
    plain, first, second = (tmp_path / name for name in ("u.jsonl", "u.jsonl.gz", "again.jsonl.gz"))
    for file in (plain, first, second):
        tradepost.done("export", "users", file)
    assert gzip.decompress(first.read_bytes()) == plain.read_bytes()
    assert first.read_bytes() == second.read_bytes()
    words = [str(COMMAND), "export", "users"]
    shown = subprocess.run(words, env=environment(tradepost.url), capture_output=True, check=True)
    assert shown.stdout == plain.read_bytes()


def test_an_export_has_its_name_only_once_it_is_complete(tradepost: Commands, tmp_path: Path) -> None:
    """An export that fails leaves the file of before as it was, and no other."""
    file = tmp_path / "users.jsonl"
    file.write_text("what was there")
    url, tradepost.url = tradepost.url, "sqlite:////nowhere/at/all.db"
    assert tradepost("export", "users", file).status != 0
    assert [each.read_text() for each in tmp_path.iterdir()] == ["what was there"]
    tradepost.url = url
    tradepost.done("export", "users", file)
    assert file.read_text() == ""


def test_an_export_ends_when_nobody_reads_on(tradepost: Commands, tmp_path: Path) -> None:
    """A reader that has seen enough ends the export without a complaint."""
    rows = [user(n, name="x" * 150) for n in range(3000)]
    tradepost.done("import", "users", json_lines(tmp_path / "users.jsonl", rows))
    words = [str(COMMAND), "export", "users"]
    with subprocess.Popen(
        words, env=environment(tradepost.url), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert json.loads(running.stdout.readline())["name"] == "x" * 150
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 141
