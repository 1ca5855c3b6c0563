"""How fast is execution itself: the same queries on the same rows in memory, without a database or HTTP.

Beside our executor, with the resolvers and loaders it has in production, stand graphql-core's with the usual
loaders and a floor written by hand for each query. Text to variables to bytes: documents are parsed and
validated once, what a request loads is fresh. The ratios are medians of those of each round.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import msgspec
from graphql import get_introspection_query

from benchmarks.peers.executors import by_hand, graphql_core
from benchmarks.peers.executors.shelves import Row, Shelves
from benchmarks.table import aligned, verdict
from tradepost import catalogue
from tradepost.access.caller import Caller
from tradepost.domain.line_item import LineItem
from tradepost.domain.order import Order
from tradepost.domain.product import Product
from tradepost.domain.scope import granted
from tradepost.domain.user import User
from tradepost.graphql.context import Context
from tradepost.graphql.documents import DocumentCache
from tradepost.graphql.limits import Limits
from tradepost.graphql.schema import BoundSchema, schema_text
from tradepost.storage import level
from tradepost.storage.statement import Statement
from tradepost.storage.statements import products

EXECUTOR = "executor"
_CALLER = Caller("benchmark", granted(["admin"]))
_encode = msgspec.json.Encoder().encode

Run = Callable[[], Awaitable[bytes]]


@dataclass(frozen=True)
class Query:
    """`faster` than graphql-core it has to be, and at most `slower` than by hand, if it has bars."""

    name: str
    asks: str
    text: str
    by_hand: Callable[[Shelves], Awaitable[bytes]] | None
    faster: float | None = None
    slower: float | None = None
    times: int = 200


QUERIES = (
    Query("Q1", "one user", "query ($id: ID!) { user(id: $id) { id name email } }", by_hand.q1, times=2000),
    Query(
        "Q2",
        "50 products",
        "{ products(first: 50) { id sku name price currency stock } }",
        by_hand.q2,
        faster=20,
        slower=2.5,
    ),
    Query(
        "Q3",
        "a user, 20 orders, 3 line items each, their products",
        "query ($id: ID!) { user(id: $id) { id name orders(first: 20) {"
        " edges { cursor node { id status total lineItems { id quantity unitPrice"
        " product { id name price } } } } pageInfo { hasNextPage endCursor } } } }",
        by_hand.q3,
        faster=20,
        slower=2.5,
        times=100,
    ),
    Query(
        "Q4",
        "the schema, as GraphiQL asks for it",
        get_introspection_query(
            specified_by_url=True, directive_is_repeatable=True, schema_description=True, one_of=True
        ),
        None,
        times=20,
    ),
)


class _Reading:
    """A database's reading whose rows are in memory."""

    def __init__(self, shelves: Shelves) -> None:
        self.statements = self.nanoseconds = 0
        self._found: dict[str, Callable[..., list[Row]]] = {
            level.by_id(User).purpose: lambda id: [shelves.users[id]],  # noqa: A006
            level.pages(Order, "user_id").purpose: lambda more, **_: shelves.orders[: more + 1],
            level.children(LineItem, "order_id").purpose: lambda ids: [
                line for each in ids for line in shelves.lines[each]
            ],
            level.by_ids(Product).purpose: lambda ids: [shelves.product_of[each] for each in ids],
            products.page(frozenset()).purpose: lambda limit: shelves.products[:limit],
        }

    async def row(self, statement: Statement, **given: Any) -> Row | None:
        rows = await self.rows(statement, **given)
        return rows[0] if rows else None

    async def rows(self, statement: Statement, **given: Any) -> list[Row]:
        self.statements += 1
        return self._found[statement.purpose](**given)


def lines(rounds: int) -> Iterator[str]:
    """A table for the queries."""
    shelves = Shelves()
    yield f"{EXECUTOR}: execution alone, in memory; µs of CPU a request, medians of {rounds} rounds"
    headings = (
        "query",
        "tradepost",
        "by hand",
        "graphql-core",
        "to by hand",
        "bar",
        "",
        "to graphql-core",
        "bar",
        "",
    )
    yield from aligned([headings, *(_row(query, shelves, rounds) for query in QUERIES)])


def _row(query: Query, shelves: Shelves, rounds: int) -> tuple[str, ...]:
    runs = [_ours(query, shelves), _theirs(query, shelves)]
    if query.by_hand:
        runs.append(partial(query.by_hand, shelves))
    ours, peer, *floor = asyncio.run(_measured(runs, rounds, query.times))
    by_hand, to_by_hand = "", ("", "", "")
    if floor:
        slower = median(a / b for a, b in zip(ours, *floor, strict=True))
        by_hand = f"{median(*floor):.1f}"
        to_by_hand = (f"{slower:.2f}", *_bar(query.slower, "<=", met=slower <= (query.slower or slower)))
    faster = median(b / a for a, b in zip(ours, peer, strict=True))
    return (
        f"{query.name} {query.asks}",
        *(f"{median(ours):.1f}", by_hand, f"{median(peer):.1f}"),
        *to_by_hand,
        f"{faster:.1f}",
        *_bar(query.faster, ">=", met=faster >= (query.faster or 0)),
    )


def _bar(bar: float | None, how: str, *, met: bool) -> tuple[str, str]:
    return ("", "") if bar is None else (f"{how} {bar:g}", verdict(met=met))


async def _measured(runs: Sequence[Run], rounds: int, times: int) -> list[list[float]]:
    """Microseconds of CPU for each run in each round; all have to say the same first."""
    said = {json.dumps(json.loads(await run()), sort_keys=True) for run in runs for _ in range(3)}
    if len(said) != 1:
        message = f"the executors do not say the same: {said}"
        raise RuntimeError(message)
    found: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, figures in zip(runs, found, strict=True):
            figures.append(min([await _once(run, times) for _ in range(5)]))
    return found


async def _once(run: Run, times: int) -> float:
    began = time.process_time()
    for _ in range(times):
        await run()
    return (time.process_time() - began) / times * 1e6


def _variables(query: Query, shelves: Shelves) -> dict[str, Any]:
    return {"id": shelves.user[0]} if "$id" in query.text else {}


def _ours(query: Query, shelves: Shelves) -> Run:
    bound = BoundSchema(schema_text(), catalogue.RESOURCES)
    operation = DocumentCache(bound.schema, bound.resolvers, Limits()).get(query.text).operation(None)
    given = _variables(query, shelves)
    reading: Any = _Reading(shelves)

    def tell(failure: Exception, *_: Any) -> dict[str, Any]:
        raise failure

    async def run() -> bytes:
        variables = operation.coercion.coerced(given)
        (variant,) = operation.variants(variables)
        data, _ = await variant.run(variables, Context(_CALLER, reading), tell)
        return _encode({"data": data})

    return run


def _theirs(query: Query, shelves: Shelves) -> Run:
    return graphql_core.runner(shelves, query.text, _variables(query, shelves))
