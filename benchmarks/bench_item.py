"""How fast is one item: a product by its id, with its ETag."""

from benchmarks.comparison import CEILING, Comparison
from benchmarks.databases import Engine
from benchmarks.request import Request
from benchmarks.services import PEER
from benchmarks.shop import Shop


def _requests(shop: Shop) -> list[Request]:
    return [Request("GET", f"/v1/products/{product}") for product in shop.products]


ITEM = Comparison(
    name="item",
    asks="a product by its id",
    requests=_requests,
    bars={Engine.SQLITE: {CEILING: 0.50, PEER.name: 12}},
    fastify=16_000,
)
