"""The floor: what somebody would write for one query alone, with its loads by level and no GraphQL at all."""

import msgspec

from benchmarks.peers.executors.shelves import Row, Shelves

_encode = msgspec.json.Encoder().encode


class _Loads:
    """What a request has loaded, as any server needs it that reads each thing once."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves
        self._products: dict[str, Row] = {}

    async def user(self, id_: str) -> Row | None:
        return self._shelves.users.get(id_)

    async def orders(self, user_id: str, limit: int) -> list[Row]:
        return [row for row in self._shelves.orders if row[1] == user_id][:limit]

    async def lines(self, order_ids: list[str]) -> dict[str, list[Row]]:
        return {id_: self._shelves.lines[id_] for id_ in order_ids}

    async def products(self, ids: list[str]) -> dict[str, Row]:
        missing = [id_ for id_ in dict.fromkeys(ids) if id_ not in self._products]
        self._products.update((id_, self._shelves.product_of[id_]) for id_ in missing)
        return self._products


async def q2(shelves: Shelves) -> bytes:
    """50 products."""
    found = [
        {"id": p[0], "sku": p[1], "name": p[2], "price": p[4] / 10_000, "currency": p[5], "stock": p[6]}
        for p in shelves.products[:50]
    ]
    return _encode({"data": {"products": found}})


async def q3(shelves: Shelves) -> bytes:
    """A user, 20 orders, their line items, their products."""
    loads = _Loads(shelves)
    user = await loads.user(shelves.user[0])
    if user is None:
        return _encode({"data": {"user": None}})
    orders = await loads.orders(user[0], 21)
    more, orders = len(orders) > 20, orders[:20]
    lines = await loads.lines([order[0] for order in orders])
    products = await loads.products([line[2] for order in orders for line in lines[order[0]]])
    edges = [
        {
            "cursor": order[0],
            "node": {
                "id": order[0],
                "status": order[2],
                "total": order[4] / 10_000,
                "lineItems": [
                    {
                        "id": line[0],
                        "quantity": line[3],
                        "unitPrice": line[6] / 10_000,
                        "product": {
                            "id": product[0],
                            "name": product[2],
                            "price": product[4] / 10_000,
                        },
                    }
                    for line in lines[order[0]]
                    for product in (products[line[2]],)
                ],
            },
        }
        for order in orders
    ]
    page = {"hasNextPage": more, "endCursor": orders[-1][0] if orders else None}
    shown = {"id": user[0], "name": user[1], "orders": {"edges": edges, "pageInfo": page}}
    return _encode({"data": {"user": shown}})


async def q1(shelves: Shelves) -> bytes:
    """One user."""
    user = await _Loads(shelves).user(shelves.user[0])
    shown = None if user is None else {"id": user[0], "name": user[1], "email": user[2]}
    return _encode({"data": {"user": shown}})
