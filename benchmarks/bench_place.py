"""How fast is placing an order: three lines of tracked stock and its event, durable before it is answered."""

import random

import msgspec

from benchmarks.comparison import DRIVER_LOOP, Comparison
from benchmarks.databases import Engine
from benchmarks.request import Request
from benchmarks.services import PEER
from benchmarks.shop import LINES, VARIETY, Shop


def orders_to_place(shop: Shop) -> list[Request]:
    chance = random.Random(VARIETY)
    return [Request("POST", "/v1/orders", _order(shop, chance)) for _ in range(VARIETY)]


def _order(shop: Shop, chance: random.Random) -> bytes:
    lines = [
        {"productId": product, "quantity": chance.randint(1, 3)}
        for product in chance.sample(shop.products, LINES)
    ]
    return msgspec.json.encode({"userId": chance.choice(shop.users), "lineItems": lines})


PLACE = Comparison(
    name="place",
    asks="placing an order of three lines",
    requests=orders_to_place,
    bars={
        Engine.SQLITE: {DRIVER_LOOP: 0.50, PEER.name: 8},
        Engine.POSTGRES: {DRIVER_LOOP: 0.50, PEER.name: 4},
    },
    fastify=1_400,
    # Contestant (b): the same statements, grouped in the same commits, called from a loop without HTTP.
    loop="benchmarks.peers.driver_loop",
)
