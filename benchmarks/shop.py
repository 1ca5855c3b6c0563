"""What a running service has to ask for: ids and cursors, looked up through its own API."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import quote

from benchmarks.client import Client

# How many distinct requests a question rotates over, so that nobody is measured on one cached row.
VARIETY = 300
LINES = 3
_PAGE = "/v1/products?limit=50"


@dataclass(frozen=True)
class Shop:
    """`pages` are the targets of every page of 50 products, `orders` have exactly three lines each."""

    users: list[str]
    products: list[str]
    orders: list[str]
    pages: list[str]


def look_around(client: Client) -> Shop:
    products = list(islice(_items(client, "/v1/products"), 5 * VARIETY))
    return Shop(
        users=_ids(item for item in _items(client, "/v1/users") if item["status"] == "ACTIVE"),
        products=_sellable(products),
        orders=_ids(item for item in _items(client, "/v1/orders") if len(item["lineItems"]) == LINES),
        pages=[_PAGE + cursor for cursor, _ in islice(cursors(client, _PAGE), VARIETY)],
    )


def cursors(client: Client, query: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each page of a collection, first to last, with what is added to `query` to ask for it."""
    cursor = ""
    while cursor is not None:
        page = client.get(query + cursor)
        yield cursor, page
        cursor = page["next"] and f"&cursor={quote(page['next'])}"


def _items(client: Client, collection: str) -> Iterator[dict[str, Any]]:
    for _, page in cursors(client, f"{collection}?limit=200"):
        yield from page["items"]


def _ids(items: Iterator[dict[str, Any]]) -> list[str]:
    return [item["id"] for item in islice(items, VARIETY)]


def _sellable(products: list[dict[str, Any]]) -> list[str]:
    """Active products of the most frequent currency: an order takes one currency only."""
    active = [product for product in products if product["status"] == "ACTIVE"]
    [(currency, _)] = Counter(product["currency"] for product in active).most_common(1)
    return _ids(product for product in active if product["currency"] == currency)
