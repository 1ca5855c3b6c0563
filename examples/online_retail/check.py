"""check: walk a running service's orders and users, and compare every sum with report.json."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .convert import REPORT
from .figures import Figures, Totals
from .money import pence, pounds
from .service import Service

SHOWN_USERS = 20


class Comparison(NamedTuple):
    what: str
    expected: str
    found: str

    def __str__(self) -> str:
        verdict = "ok  " if self.expected == self.found else "DIFF"
        return f"{verdict}  {self.what:<44}{self.expected:>18}{self.found:>18}"


class Walk(NamedTuple):
    """What the service has: the figures, and the orders that contradict themselves."""

    figures: Figures
    wrong_totals: int
    not_as_loaded: int


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(prog="python -m examples.online_retail check", description=__doc__)
    parser.add_argument("out", metavar="OUT_DIR", type=Path, help="where convert wrote report.json")
    parser.add_argument("--url", required=True, help="of the service, such as http://127.0.0.1:8000")
    parser.add_argument("--key", required=True, help="an API key that may read users and orders")
    chosen = parser.parse_args(arguments)
    expected = Figures.from_json(json.loads((chosen.out / REPORT).read_text("utf-8"))["figures"])
    comparisons = list(compare(expected, walk(Service(chosen.url, chosen.key))))
    print(f"      {'':<44}{REPORT:>18}{'service':>18}", *comparisons, sep="\n")
    differences = sum(one.expected != one.found for one in comparisons)
    print(f"\n{len(comparisons)} comparisons, {differences} differences")
    return 1 if differences else 0


def walk(service: Service) -> Walk:
    emails: dict[str, str] = {user["id"]: user["email"] for user in service.items("/v1/users")}
    figures, wrong_totals, not_as_loaded = Figures(), 0, 0
    for order in service.items("/v1/orders"):
        totals = totals_of(order)
        figures.add(emails.get(order["userId"], order["userId"]), order["createdAt"], totals)
        wrong_totals += totals.pence != sum_of_lines(order)
        not_as_loaded += (order["status"], order["currency"]) != ("FULFILLED", "GBP")
    return Walk(figures, wrong_totals, not_as_loaded)


def totals_of(order: dict[str, Any]) -> Totals:
    items = order["lineItems"]
    return Totals(1, len(items), sum(item["quantity"] for item in items), pence(order["total"]))


def sum_of_lines(order: dict[str, Any]) -> int:
    return sum(pence(item["unitPrice"]) * item["quantity"] for item in order["lineItems"])


def compare(expected: Figures, walked: Walk) -> Iterator[Comparison]:
    found = walked.figures
    yield from compare_totals("all", expected.overall, found.overall)
    yield Comparison("orders whose total is not that of their lines", "0", str(walked.wrong_totals))
    yield Comparison("orders not FULFILLED or not in GBP", "0", str(walked.not_as_loaded))
    for month in sorted({*expected.months, *found.months}):
        of_month = (figures.months.get(month, Totals()) for figures in (expected, found))
        yield from compare_totals(month, *of_month)
    yield from compare_users(expected.users, found.users)


def compare_totals(of: str, expected: Totals, found: Totals) -> Iterator[Comparison]:
    yield Comparison(f"{of}: orders", f"{expected.orders:,}", f"{found.orders:,}")
    yield Comparison(f"{of}: lines", f"{expected.lines:,}", f"{found.lines:,}")
    yield Comparison(f"{of}: pieces", f"{expected.quantity:,}", f"{found.quantity:,}")
    yield Comparison(f"{of}: total GBP", pounds(expected.pence), pounds(found.pence))


def compare_users(expected: dict[str, Totals], found: dict[str, Totals]) -> Iterator[Comparison]:
    """One line for the users that agree, however many, and one for each of the first that do not."""
    users = sorted({*expected, *found})
    different = [email for email in users if expected.get(email) != found.get(email)]
    yield Comparison("users with orders", f"{len(expected):,}", f"{len(found):,}")
    same = len(users) - len(different)
    yield Comparison("users with the same orders and total", f"{len(users):,}", f"{same:,}")
    for email in different[:SHOWN_USERS]:
        yield Comparison(email, shown(expected.get(email)), shown(found.get(email)))


def shown(totals: Totals | None) -> str:
    return f"{totals.orders:,}: {pounds(totals.pence)}" if totals else "none"
