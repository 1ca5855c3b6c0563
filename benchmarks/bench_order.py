"""How fast is an order with its lines: two tables in one answer."""

from benchmarks.comparison import Comparison
from benchmarks.databases import Engine
from benchmarks.request import Request
from benchmarks.services import PEER
from benchmarks.shop import Shop


def _requests(shop: Shop) -> list[Request]:
    return [Request("GET", f"/v1/orders/{order}") for order in shop.orders]


ORDER = Comparison(
    name="order",
    asks="an order by its id, with its three lines",
    requests=_requests,
    bars={Engine.SQLITE: {PEER.name: 12}},
    fastify=6_700,
)
