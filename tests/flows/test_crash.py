"""What was acknowledged survives; what was not has left nothing half."""

import http.client
import signal
import threading
from collections import Counter
from collections.abc import Callable

from tests.flows.process import Process, serving

_BUYERS = 8
_ENOUGH = 150


def _buy(process: Process, user: str, product: str, placed: list[str], enough: threading.Event) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=20)
    body = {
        "userId": user,
        "lineItems": [{"productId": product, "quantity": 1}, {"productId": product, "quantity": 2}],
    }
    try:
        while True:
            status, order = process.call_on(connection, "POST", "/v1/orders", body)
            assert status == 201, order
            placed.append(order["id"])
            if len(placed) >= _ENOUGH:
                enough.set()
    except (OSError, http.client.HTTPException):
        connection.close()


def _everything(process: Process, path: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    cursor = ""
    while True:
        _, page = process.call("GET", f"{path}?limit=200{cursor}")
        found += page["items"]
        if page["next"] is None:
            return found
        cursor = f"&cursor={page['next']}"


def test_every_acknowledged_order_survives_kill_9(engine: str, new_database: Callable[[str], str]) -> None:
    """After kill -9 under load every acknowledged order is there with its lines, its stock and its event."""
    url = new_database(engine)
    placed: list[str] = []
    with serving(url) as process:
        user = process.call("POST", "/v1/users", {"name": "Ada", "email": "ada@example.com"})[1]["id"]
        goods = {"sku": "s", "name": "Lantern", "price": 1.5, "currency": "GBP", "stock": 1_000_000}
        product = process.call("POST", "/v1/products", goods)[1]["id"]
        enough = threading.Event()
        buyers = [
            threading.Thread(target=_buy, args=(process, user, product, placed, enough))
            for _ in range(_BUYERS)
        ]
        for each in buyers:
            each.start()
        assert enough.wait(60)
        process.end(signal.SIGKILL)
        for each in buyers:
            each.join(30)
    with serving(url) as process:
        orders = _everything(process, "/v1/orders")
        events = Counter(
            each["subject"]
            for each in _everything(process, "/v1/events")
            if "order.placed" in str(each["type"])
        )
        stock = process.call("GET", f"/v1/products/{product}")[1]["stock"]
    ids = {str(each["id"]) for each in orders}
    assert set(placed) <= ids
    assert all(len(each["lineItems"]) == 2 and each["total"] == 4.5 for each in orders)  # type: ignore[arg-type]
    assert stock == 1_000_000 - 3 * len(orders)
    assert events == Counter(f"orders/{each}" for each in ids)
