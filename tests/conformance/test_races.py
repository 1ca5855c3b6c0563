"""Lost races on PostgreSQL: a transaction that lost is run again as a whole, for a bounded number of times."""

import asyncio
import random
from collections.abc import Callable

import asyncpg
import pytest

from tests.conformance.store import ADD_PRODUCT, ADD_USER, Store, add_event, product_row, sql, user_row
from tests.service import Service
from tradepost.domain.product import Product
from tradepost.problems import Conflict
from tradepost.storage.database import Writing
from tradepost.storage.record_statements import statements_of

SELL = "UPDATE products SET stock = stock - 1 WHERE id = :id"


@pytest.fixture(scope="module")
def store(new_service: Callable[..., Service]) -> Store:
    """SQLite has one writer at a time: there are no such races."""
    return Store(new_service("postgresql"))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries do not wait."""
    monkeypatch.setattr(random, "uniform", lambda *_: 0.0)


def test_a_deadlock_is_run_again(store: Store) -> None:
    """Two transactions that lock two rows in opposite orders are both done, and what each sold is sold once."""
    goods = [product_row(), product_row()]
    attempts: list[str] = []
    met = [asyncio.Event(), asyncio.Event()]

    async def add(tx: Writing) -> None:
        await tx.many(ADD_PRODUCT, goods)

    async def sell(tx: Writing, way: int) -> None:
        attempts.append("again" if met[way].is_set() else "first")
        one, other = goods[way], goods[1 - way]
        await tx.row(statements_of(Product).lock, id=one["id"])
        met[way].set()
        await asyncio.gather(*[each.wait() for each in met])
        await tx.run(sql(SELL), id=one["id"])
        await tx.row(statements_of(Product).lock, id=other["id"])
        await tx.run(sql(SELL), id=other["id"])

    store.write(add)
    assert store.writes(lambda tx: sell(tx, 0), lambda tx: sell(tx, 1)) == [None, None]
    assert attempts.count("again") >= 1
    assert store.rows("SELECT stock FROM products") == [(8,), (8,)]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("lost", [asyncpg.SerializationError, asyncpg.DeadlockDetectedError])
def test_a_lost_race_starts_anew_from_nothing(store: Store, lost: type[Exception]) -> None:
    """Each attempt begins with an empty transaction: of those that lost no row and no event remains."""
    attempts: list[dict[str, object]] = []

    async def work(tx: Writing) -> str:
        attempts.append(user_row())
        await tx.run(ADD_USER, **attempts[-1])
        event = await add_event(tx, str(attempts[-1]["id"]))
        if len(attempts) < 4:
            raise lost
        return event

    users, events = store.count("users"), store.count("events")
    store.write(work)
    assert len(attempts) == 4
    assert (store.count("users"), store.count("events")) == (users + 1, events + 1)
    assert store.rows(f"SELECT count(*) FROM users WHERE id = '{attempts[-1]['id']}'") == [(1,)]


@pytest.mark.usefixtures("impatient")
def test_a_race_lost_too_often_is_a_conflict(store: Store) -> None:
    """Attempts are bounded: then it is the caller's to try again, who is told so; nothing remains."""
    attempts: list[int] = []

    async def work(tx: Writing) -> None:
        attempts.append(1)
        assert len(attempts) < 100
        await tx.run(ADD_USER, **user_row())
        raise asyncpg.SerializationError

    before = store.count("users")
    with pytest.raises(Conflict):
        store.write(work)
    assert len(attempts) > 1
    assert store.count("users") == before


@pytest.mark.usefixtures("impatient")
def test_a_race_lost_too_often_is_409(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the interface a lost race is 409, a problem like any other."""

    async def lost(*_: object) -> None:
        raise asyncpg.SerializationError

    service = store.service
    with monkeypatch.context() as patched:
        patched.setattr("tradepost.actions.users.Users.create", lost)
        reply = service.post("/v1/users", {"name": "Ada", "email": "ada@races.example"})
    assert (reply.status, reply.json["type"].rpartition("/")[2]) == (409, "conflict")
    assert service.get("/v1/users?email=ada@races.example").json["items"] == []


def test_a_full_pool_waits_its_turn(store: Store) -> None:
    """Many more transactions at once than there are connections are all done."""

    async def work(tx: Writing) -> int:
        row = await tx.row(sql("SELECT 1"))
        return 0 if row is None else int(row[0])

    assert store.writes(*[work] * 200) == [1] * 200
