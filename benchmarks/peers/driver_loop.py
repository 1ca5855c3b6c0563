"""Contestant (b): tradepost's own statements for an order of three lines, called by the bare driver.

No HTTP, no JSON, no checks: what is left is what the engine and its driver cost. On SQLite the orders in
flight share a commit, each in its savepoint, as tradepost's do; on PostgreSQL each is a transaction.
"""

import argparse
import asyncio
import itertools
import random
import time
from typing import Any

import apsw
import asyncpg
import msgspec

from benchmarks.sample import Sample, sample
from tradepost.clock import instant
from tradepost.domain.ids import Ids
from tradepost.domain.line_item import LineItem
from tradepost.domain.order import Order
from tradepost.storage.record_statements import statements_of
from tradepost.storage.sqlite import connect
from tradepost.storage.statement import POSTGRES, SQLITE, Compiled, Statement, compile_statement
from tradepost.storage.statements import events, products

_LINES = 3
_POOL = 8
_STATEMENTS = {
    "basket": products.BASKET,
    "stock": products.MOVE_STOCK,
    "order": statements_of(Order).insert,
    "lines": statements_of(LineItem).insert,
    "event": events.APPEND,
}


class Orders:
    """The parameters of one order after another."""

    def __init__(self, user_ids: list[str], product_ids: list[str]) -> None:
        self._users = itertools.cycle(user_ids)
        self._products = product_ids
        self._chance = random.Random(7)
        self._ids = Ids()

    def next(self) -> dict[str, Any]:
        ms = time.time_ns() // 1_000_000
        now, order_id, user_id = instant(ms), self._ids.new(ms), next(self._users)
        chosen = sorted(self._chance.sample(self._products, _LINES))
        return {
            "basket": {"ids": chosen, "user_id": user_id},
            "stock": [{"product_id": each, "pieces": 1, "now": now} for each in chosen],
            "order": _order(order_id, user_id, now),
            "lines": [_line(self._ids.new(ms), order_id, each, now) for each in chosen],
            "event": _event(self._ids.new(ms), order_id, now),
        }


def _order(order_id: str, user_id: str, now: str) -> dict[str, Any]:
    kept = dict.fromkeys(("shipping_address_id", "shipping_address"))
    dates = {"created_at": now, "updated_at": now, "version": 1}
    return {
        "id": order_id,
        "user_id": user_id,
        "status": "PENDING",
        "currency": "GBP",
        "total": 3,
        **kept,
        **dates,
    }


def _line(line_id: str, order_id: str, product_id: str, now: str) -> dict[str, Any]:
    snapshot = {"sku": "SKU-1234", "name": "The name of a product", "unit_price": 1, "currency": "GBP"}
    dates = {"created_at": now, "updated_at": now, "version": 1}
    own = {"id": line_id, "order_id": order_id, "product_id": product_id, "quantity": 1, "total": 1}
    return {**own, **snapshot, **dates}


def _event(event_id: str, order_id: str, now: str) -> dict[str, Any]:
    name = "dev.tradepost.order.placed"
    about = {"entityType": "order", "entityId": order_id, "eventType": name, "timestamp": now}
    data = msgspec.json.encode({**about, "schemaVersion": "1"}).decode()
    envelope = {"id": event_id, "type": name, "time": now, "data": data, "traceparent": None}
    about = {"source": "http://x", "subject": f"orders/{order_id}", "dataschema": f"http://x/{name}"}
    return {**envelope, **about}


def _place_sqlite(connection: apsw.Connection, sql: dict[str, Compiled], given: dict[str, Any]) -> None:
    connection.execute("SAVEPOINT one")
    for name, (text, bind) in sql.items():
        if isinstance(given[name], list):
            connection.executemany(text, [bind(each) for each in given[name]])
        else:
            connection.execute(text, bind(given[name])).fetchall()
    connection.execute("RELEASE one")


def _run_sqlite(path: str, group: int, seconds: float, warm_up: float) -> Sample:
    connection = connect(path)
    connection.wal_autocheckpoint(1000)
    sql = _compiled(SQLITE)
    connection.execute("UPDATE products SET stock = 1000000000 WHERE stock IS NOT NULL")
    people = [row[0] for row in connection.execute("SELECT id FROM users LIMIT 500")]
    goods = [row[0] for row in connection.execute("SELECT id FROM products LIMIT 500")]
    orders, latencies = Orders(people, goods), []
    started, measured_from = time.perf_counter(), time.perf_counter() + warm_up
    cpu = 0.0
    while (began := time.perf_counter()) < started + warm_up + seconds:
        if began < measured_from:
            cpu = time.process_time()
        connection.execute("BEGIN IMMEDIATE")
        for _ in range(group):
            _place_sqlite(connection, sql, orders.next())
        connection.execute("COMMIT")
        if began >= measured_from:
            latencies += [time.perf_counter() - began] * group
    return sample(latencies, seconds, time.process_time() - cpu)


async def _run_postgres(url: str, flight: int, seconds: float, warm_up: float) -> Sample:
    pool = await asyncpg.create_pool(url, min_size=_POOL, max_size=_POOL)
    sql = _compiled(POSTGRES)
    await pool.execute("UPDATE products SET stock = 1000000000 WHERE stock IS NOT NULL")
    people = [row[0] for row in await pool.fetch("SELECT id FROM users LIMIT 500")]
    goods = [row[0] for row in await pool.fetch("SELECT id FROM products LIMIT 500")]
    orders, latencies = Orders(people, goods), list[float]()
    started = time.perf_counter()
    cpu = [0.0]

    async def buyer() -> None:
        while (began := time.perf_counter()) < started + warm_up + seconds:
            if began < started + warm_up:
                cpu[0] = time.process_time()
            await _place_postgres(pool, sql, orders.next())
            if began >= started + warm_up:
                latencies.append(time.perf_counter() - began)

    await asyncio.gather(*[buyer() for _ in range(flight)])
    took = time.process_time() - cpu[0]
    await pool.close()
    return sample(latencies, seconds, took)


async def _place_postgres(pool: "asyncpg.Pool[Any]", sql: dict[str, Compiled], given: dict[str, Any]) -> None:
    async with pool.acquire() as connection, connection.transaction():
        for name, (text, bind) in sql.items():
            if isinstance(given[name], list):
                await connection.executemany(text, [bind(each) for each in given[name]])
            else:
                await connection.fetch(text, *bind(given[name]))


def _compiled(dialect: Any) -> dict[str, Compiled]:
    kept: dict[str, Statement] = _STATEMENTS
    return {name: compile_statement(statement, dialect) for name, statement in kept.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", required=True)
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--warm-up", type=float, required=True)
    given = parser.parse_args()
    if given.database.startswith("sqlite:///"):
        path = given.database.removeprefix("sqlite:///")
        found = _run_sqlite(path, given.connections, given.seconds, given.warm_up)
    else:
        found = asyncio.run(_run_postgres(given.database, given.connections, given.seconds, given.warm_up))
    print(msgspec.json.encode(found).decode())


if __name__ == "__main__":
    main()
