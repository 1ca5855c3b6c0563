"""graphql-core's own executor with the loaders usual with it, on documents parsed and validated once.

Objects with attributes stand behind its default resolver; relations are loaded by aiodataloader, with fresh
loaders for each request.
"""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from types import SimpleNamespace
from typing import Any

import msgspec
from aiodataloader import DataLoader
from graphql import GraphQLResolveInfo, GraphQLSchema, build_schema, execute, parse, validate

from benchmarks.peers.executors.shelves import Row, Shelves
from tradepost.graphql.schema import schema_text

_encode = msgspec.json.Encoder().encode
_Info = GraphQLResolveInfo[Any]


class _Loaders:
    """The loaders of one request."""

    def __init__(self, objects: "_Objects") -> None:
        self.users = DataLoader(objects.users)
        self.orders = DataLoader(objects.orders_of)
        self.lines = DataLoader(objects.lines_of)
        self.products = DataLoader(objects.products)


class _Objects:
    """The rows as objects, loaded in batches."""

    def __init__(self, shelves: Shelves) -> None:
        self._users = {
            shelves.user[0]: SimpleNamespace(id=shelves.user[0], name=shelves.user[1], email=shelves.user[2])
        }
        self._products = {row[0]: _product(row) for row in shelves.products}
        self._orders = {
            shelves.user[0]: [
                SimpleNamespace(id=row[0], status=row[2], total=row[4] / 10_000) for row in shelves.orders
            ]
        }
        self._lines = {order: [_line(row) for row in rows] for order, rows in shelves.lines.items()}
        self.listed = list(self._products.values())

    async def users(self, ids: list[str]) -> list[Any]:
        return [self._users.get(id_) for id_ in ids]

    async def orders_of(self, ids: list[str]) -> list[Any]:
        return [self._orders[id_][:21] for id_ in ids]

    async def lines_of(self, ids: list[str]) -> list[Any]:
        return [self._lines[id_] for id_ in ids]

    async def products(self, ids: list[str]) -> list[Any]:
        return [self._products[id_] for id_ in ids]


def _product(row: Row) -> SimpleNamespace:
    return SimpleNamespace(
        id=row[0], sku=row[1], name=row[2], price=row[4] / 10_000, currency=row[5], stock=row[6]
    )


def _line(row: Row) -> SimpleNamespace:
    return SimpleNamespace(id=row[0], quantity=row[3], unitPrice=row[6] / 10_000, product_id=row[2])


def runner(shelves: Shelves, query: str, variables: dict[str, Any]) -> Callable[[], Awaitable[bytes]]:
    """Runs a query once each time it is called."""
    schema, objects, document = _schema(), _Objects(shelves), parse(query)
    if errors := validate(schema, document):
        raise errors[0]
    schema.query_type.fields["products"].resolve = lambda *_, **args: objects.listed[: args.get("first")]  # type: ignore[union-attr]

    async def run() -> bytes:
        found = execute(schema, document, context_value=_Loaders(objects), variable_values=variables)
        result: Any = await found if isawaitable(found) else found
        if result.errors:
            raise result.errors[0]
        return _encode({"data": result.data})

    return run


def _schema() -> GraphQLSchema:
    schema = build_schema(schema_text())
    kinds: Any = schema.type_map
    kinds["Query"].fields["user"].resolve = lambda _, info, id: info.context.users.load(id)  # noqa: A006
    kinds["User"].fields["orders"].resolve = _orders
    kinds["OrderConnection"].fields["pageInfo"].resolve = lambda page, _: page
    kinds["Order"].fields["lineItems"].resolve = lambda order, info: info.context.lines.load(order.id)
    kinds["LineItem"].fields["product"].resolve = lambda line, info: info.context.products.load(
        line.product_id
    )
    return schema


async def _orders(user: Any, info: _Info, first: int) -> Any:
    rows = await info.context.orders.load(user.id)
    edges = [SimpleNamespace(cursor=row.id, node=row) for row in rows[:first]]
    return SimpleNamespace(
        edges=edges, hasNextPage=len(rows) > first, endCursor=edges[-1].cursor if edges else None
    )
