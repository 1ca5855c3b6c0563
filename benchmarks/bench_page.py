"""How fast is a page: 50 products and the cursor of the next 50, at every depth of the collection."""

from benchmarks.comparison import CEILING, Comparison
from benchmarks.databases import Engine
from benchmarks.request import Request
from benchmarks.services import PEER
from benchmarks.shop import Shop


def _requests(shop: Shop) -> list[Request]:
    return [Request("GET", page) for page in shop.pages]


PAGE = Comparison(
    name="page",
    asks="a page of 50 products",
    requests=_requests,
    bars={Engine.SQLITE: {CEILING: 0.20, PEER.name: 10}},
    fastify=3_900,
)
