"""How fast is GraphQL over HTTP: one user, 50 products, a user's orders down to their products, placing.

Beside tradepost stand Strawberry on SQLAlchemy and mercurius with its JIT, filled with what tradepost has,
ids and all: everyone is asked the same and, before anything is timed, has to answer the same.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.bench_place import orders_to_place
from benchmarks.client import Client, RefusedError
from benchmarks.comparison import Comparison, Outcome, take_turns
from benchmarks.contestants import Served
from benchmarks.databases import Engine, analyze, scratch
from benchmarks.node import UnavailableError
from benchmarks.request import Request
from benchmarks.services import (
    MERCURIUS,
    PEER,
    STRAWBERRY,
    TRADEPOST,
    OpenService,
    Service,
    Size,
    mercurius,
    opened,
)
from benchmarks.shop import LINES, VARIETY, Shop

REST_ITEM = "REST, the same user"
Values = dict[str, Any]

# The orders come later: so many of three lines for each user who is asked for, each line of another product.
_SIZE = Size(users=1_000, products=10_000, orders=0)
_ORDERS_EACH = 25
_EXPORTED = ("users", "products", "orders")
_COMPARED = 20
ERRORS = b'"errors":['


@dataclass(frozen=True, kw_only=True)
class Question(Comparison):
    """`opaque`: members whose values are each service's own; they only have to recur where others' do.

    `rest`: the same asked of tradepost's REST interface.
    """

    opaque: frozenset[str] = frozenset()
    rest: Callable[[Shop], list[Request]] | None = None


@dataclass(frozen=True)
class Arena:
    """Everyone who answers, tradepost first; why who is missing is not there."""

    services: list[OpenService]
    skipped: list[str]


def _posts(document: str, variables: Callable[[Shop], list[Values]], shop: Shop) -> list[Request]:
    """As a client sends them: the document's text with each."""
    return [
        Request("POST", "/graphql", msgspec.json.encode({"query": document, "variables": values}))
        for values in variables(shop)
    ]


def _on_both(bars: Mapping[str, float]) -> dict[Engine, Mapping[str, float]]:
    return dict.fromkeys(Engine, bars)


def _users(shop: Shop) -> list[Values]:
    return [{"id": user} for user in shop.users]


def _places(shop: Shop) -> list[Values]:
    """Pages from many places on."""
    return [{"after": product} for product in shop.products]


def _orders(shop: Shop) -> list[Values]:
    return [{"input": msgspec.Raw(request.body)} for request in orders_to_place(shop)]


_USER = """
query User($id: ID!) {
  user(id: $id) { id name email }
}
"""
_PRODUCTS = """
query Products($after: ID) {
  products(first: 50, after: $after) { id sku name price currency stock }
}
"""
_TREE = """
query Orders($id: ID!) {
  user(id: $id) {
    id
    name
    orders(first: 20) {
      edges {
        cursor
        node {
          id
          status
          total
          lineItems {
            id
            quantity
            unitPrice
            product { id name price }
          }
        }
      }
      pageInfo { hasNextPage endCursor }
    }
  }
}
"""
_PLACE = """
mutation Place($input: CreateOrderInput!) {
  createOrder(input: $input) {
    id
    status
    total
    lineItems { id sku quantity unitPrice total }
  }
}
"""

TREE = Question(
    name="graphql-tree",
    asks="a user, 20 orders, their 60 line items and the product of each",
    requests=partial(_posts, _TREE, _users),
    bars=_on_both({STRAWBERRY.name: 12, MERCURIUS: 1.2}),
    opaque=frozenset({"cursor", "endCursor"}),
)
QUESTIONS = (
    Question(
        name="graphql-user",
        asks="a user by its id",
        requests=partial(_posts, _USER, _users),
        bars=_on_both({REST_ITEM: 0.8}),
        rest=lambda shop: [Request("GET", f"/v1/users/{user}") for user in shop.users],
    ),
    Question(
        name="graphql-products",
        asks="50 products",
        requests=partial(_posts, _PRODUCTS, _places),
        bars=_on_both({MERCURIUS: 1.0}),
    ),
    TREE,
    # Placing comes last: it changes what the others look at.
    Question(
        name="graphql-place",
        asks="placing an order of three lines",
        requests=partial(_posts, _PLACE, _orders),
        bars=_on_both({}),
        opaque=frozenset({"id"}),
    ),
)


@contextmanager
def prepared(engine: Engine, folder: Path) -> Iterator[Arena]:
    with ExitStack() as stack:
        database = stack.enter_context(scratch(engine, folder))
        tradepost = stack.enter_context(opened(TRADEPOST, database, _SIZE, folder))
        _export(database, tradepost.shop, folder)
        analyze(engine, database)
        peers, skipped = [STRAWBERRY], []
        try:
            peers.append(mercurius())
        except UnavailableError as error:
            skipped.append(f"  * {MERCURIUS} skipped: {error}")
        theirs = [_opened(stack, peer, engine, tradepost.shop, folder) for peer in peers]
        yield Arena([tradepost, *theirs], skipped)


def ask(question: Question, arena: Arena, rounds: int, seconds: float) -> list[Outcome]:
    """The outcome of tradepost comes first. RefusedError if the answers are not the same."""
    _compare_answers(question, arena.services)
    contestants = [
        replace(service.asked(question.requests(service.shop)), mark_of_refusal=ERRORS)
        for service in arena.services
    ]
    return take_turns([*contestants, *_rest(question, arena)], rounds, seconds)


def _rest(question: Question, arena: Arena) -> Iterator[Served]:
    tradepost = arena.services[0]
    if question.rest:
        yield replace(tradepost.asked(question.rest(tradepost.shop)), name=REST_ITEM)


def _export(database: str, shop: Shop, folder: Path) -> None:
    """Adds the orders and writes everything into files that the peers load."""
    added = folder / "added.jsonl"
    added.write_bytes(b"\n".join(map(msgspec.json.encode, _orders_of_the_past(shop))))
    TRADEPOST.run(database, "import", "orders", str(added))
    for what in _EXPORTED:
        TRADEPOST.run(database, "export", what, str(folder / f"{what}.jsonl"))


def _orders_of_the_past(shop: Shop) -> Iterator[Values]:
    """One order for each user, then another for each: nobody's lie side by side."""
    chance = random.Random(VARIETY)
    baskets = {user: chance.sample(shop.products, _ORDERS_EACH * LINES) for user in shop.users}
    for start in range(0, _ORDERS_EACH * LINES, LINES):
        for user, basket in baskets.items():
            lines = [
                {"productId": product, "quantity": chance.randint(1, 4)}
                for product in basket[start : start + LINES]
            ]
            yield {"reference": f"{start}-{user}", "userId": user, "lineItems": lines}


def _opened(stack: ExitStack, peer: Service, engine: Engine, shop: Shop, folder: Path) -> OpenService:
    """In a database of its own with the REST peer's tables."""
    database = stack.enter_context(scratch(engine, folder))
    PEER.run(database, "migrate")
    STRAWBERRY.run(database, "load", str(folder))
    analyze(engine, database)
    key = PEER.new_key(database)
    server = stack.enter_context(peer.serve(database, key, folder / f"{peer.name}.log"))
    return OpenService(peer.name, server, key, shop)


def _compare_answers(question: Question, services: list[OpenService]) -> None:
    requests = question.requests(services[0].shop)
    with ExitStack() as stack:
        clients = [stack.enter_context(service.client()) for service in services]
        for request in requests[:: max(1, len(requests) // _COMPARED)]:
            ours, *others = [_answered(question, client, request) for client in clients]
            for service, theirs in zip(services[1:], others, strict=True):
                if theirs != ours:
                    raise RefusedError(f"{service.name} answers {theirs!r}, {services[0].name} {ours!r}")


def _answered(question: Question, client: Client, request: Request) -> Any:
    answer = msgspec.json.decode(client.send(request).body)
    if "errors" in answer:
        raise RefusedError(f"{request.body!r}: {answer['errors']!r}")
    return _named_alike(answer["data"], question.opaque, {})


def _named_alike(value: Any, opaque: frozenset[str], names: dict[str, str]) -> Any:
    """The value with each service's own names replaced by numbers, in the order of their first appearance."""
    if isinstance(value, list):
        return [_named_alike(each, opaque, names) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        member: names.setdefault(each, f"#{len(names)}")
        if member in opaque and isinstance(each, str)
        else _named_alike(each, opaque, names)
        for member, each in value.items()
    }
