"""Transactions happen whole or not at all, each for itself, on both engines alike."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.conformance.store import ADD_PRODUCT, ADD_USER, Store, Work, add_event, product_row, sql, user_row
from tests.service import Service
from tradepost.assembly import database
from tradepost.domain.product import Product
from tradepost.domain.user import User
from tradepost.settings import load
from tradepost.storage.database import UniqueViolation, Writing
from tradepost.storage.record_statements import statements_of


class _Stop(Exception):
    """What a test's transaction fails with."""


def _is_there(store: Store, user: dict[str, Any]) -> bool:
    return bool(store.read(statements_of(User).get, id=user["id"]))


def _adds(user: dict[str, Any]) -> Work[str]:
    async def work(tx: Writing) -> str:
        await tx.run(ADD_USER, **user)
        await add_event(tx, user["id"])
        return str(user["id"])

    return work


def _events_about(store: Store, user: dict[str, Any]) -> int:
    found: int = store.rows(f"SELECT count(*) FROM events WHERE subject = 'users/{user['id']}'")[0][0]
    return found


def test_what_is_written_is_there_for_every_connection(store: Store) -> None:
    """When write() returns, any other connection sees all of it."""
    user = user_row()
    assert store.write(_adds(user)) == user["id"]
    other = database(load({}, database_url=store.service.database_url))

    async def seen() -> Any:
        await other.start()
        try:
            return await other.reading().row(statements_of(User).get, id=user["id"])
        finally:
            await other.stop()

    found = store.run(seen())
    assert found is not None
    assert found[0] == user["id"]


@pytest.mark.parametrize("last", ["an exception", "a duplicate", "a broken rule", "broken SQL"])
def test_a_failed_transaction_leaves_nothing(store: Store, last: str) -> None:
    """Whatever a transaction fails with, and however late, none of its rows remain, and the next one is as ever."""
    user, product = user_row(), product_row()

    async def work(tx: Writing) -> None:
        await _adds(user)(tx)
        await tx.run(ADD_PRODUCT, **product)
        await tx.many(ADD_USER, [user_row() for _ in range(3)])
        if last == "an exception":
            raise _Stop
        if last == "a duplicate":
            await tx.run(ADD_USER, **user_row(email_key=user["email_key"]))
        if last == "a broken rule":
            await tx.run(sql("UPDATE products SET stock = -1 WHERE id = :id"), id=product["id"])
        await tx.run(sql("SELECT nonsense FROM nowhere"))

    before = {table: store.count(table) for table in ("users", "products", "events")}
    with pytest.raises(Exception) as caught:  # noqa: PT011 (which one is the engine's own, but for two)
        store.write(work)
    assert isinstance(
        caught.value, {"an exception": _Stop, "a duplicate": UniqueViolation}.get(last, Exception)
    )
    assert {table: store.count(table) for table in before} == before
    store.write(_adds(user))
    assert (_is_there(store, user), _events_about(store, user)) == (True, 1)


def test_a_transaction_sees_its_own_writes_and_nobody_else_does(store: Store) -> None:
    """Before the commit the writer sees what it wrote, a reader does not."""
    user = user_row()

    async def work(tx: Writing) -> tuple[bool, bool]:
        await tx.run(ADD_USER, **user)
        own = await tx.row(statements_of(User).get, id=user["id"])
        other = await store.database.reading().row(statements_of(User).get, id=user["id"])
        return own is not None, other is not None

    assert store.write(work) == (True, False)
    assert _is_there(store, user)


@pytest.mark.parametrize(
    ("name", "table", "column"),
    [
        ("email", "users", "email_key"),
        ("sku", "products", "sku"),
        ("id", "users", "id"),
        ("many", "users", "email_key"),
    ],
)
def test_a_duplicate_names_table_and_column(store: Store, name: str, table: str, column: str) -> None:
    """Both engines tell which table and column a second value was refused for, also in a batch."""
    user, product = user_row(), product_row()

    async def first(tx: Writing) -> None:
        await tx.run(ADD_USER, **user)
        await tx.run(ADD_PRODUCT, **product)

    async def second(tx: Writing) -> None:
        match name:
            case "email":
                await tx.run(ADD_USER, **user_row(email_key=user["email_key"]))
            case "sku":
                await tx.run(ADD_PRODUCT, **product_row(sku=product["sku"]))
            case "id":
                await tx.run(ADD_USER, **user_row(id=user["id"]))
            case _:
                await tx.many(ADD_USER, [user_row(), user_row(email_key=user["email_key"]), user_row()])

    store.write(first)
    before = store.count(table)
    with pytest.raises(UniqueViolation) as caught:
        store.write(second)
    assert (caught.value.table, caught.value.column) == (table, column)
    assert store.count(table) == before


def test_what_is_hidden_is_no_duplicate(store: Store) -> None:
    """A value is unique among what is there: a deleted row's is free again."""
    gone, user = user_row(deleted_at="2026-11-20T09:00:00.000Z"), user_row()
    user["email_key"] = gone["email_key"]
    for each in (gone, user):
        store.write(_adds(each))
    assert _is_there(store, user)
    assert not _is_there(store, gone)


def test_the_database_itself_keeps_stock_above_nothing(store: Store) -> None:
    """Stock below zero is refused by the table, whatever the program thought."""
    product = product_row(stock=1)

    async def sell(tx: Writing) -> None:
        await tx.run(sql("UPDATE products SET stock = stock - 2 WHERE id = :id"), id=product["id"])

    async def add(tx: Writing) -> None:
        await tx.run(ADD_PRODUCT, **product)

    store.write(add)
    with pytest.raises(Exception, match=r"(?i)check"):
        store.write(sell)
    assert store.rows(f"SELECT stock FROM products WHERE id = '{product['id']}'") == [(1,)]


def test_a_child_needs_its_parent(store: Store) -> None:
    """Foreign keys hold on both engines."""

    async def work(tx: Writing) -> None:
        await tx.run(
            sql(
                "INSERT INTO orders (id, user_id, status, currency, total, created_at, updated_at, version)"
                " VALUES ('o', 'nobody', 'PENDING', 'GBP', 0, '', '', 1)"
            )
        )

    with pytest.raises(Exception, match=r"(?i)foreign key"):
        store.write(work)
    assert store.count("orders") == 0


def test_a_failing_transaction_takes_no_other_with_it(store: Store) -> None:
    """Of many at once those that fail get their own failure, and all others are there, each with its own result."""
    users = [user_row() for _ in range(40)]
    twin = user_row()
    store.write(_adds(twin))

    def failing(n: int) -> Work[str]:
        async def work(tx: Writing) -> str:
            await _adds(users[n])(tx)
            match n % 4:
                case 1:
                    raise _Stop(n)
                case 2:
                    await tx.run(ADD_USER, **user_row(email_key=twin["email_key"]))
                case 3:
                    await tx.rows(sql("SELECT nonsense FROM nowhere"))
            return str(users[n]["id"])

        return work

    found = store.writes(*[failing(n) for n in range(40)])
    for n, (user, result) in enumerate(zip(users, found, strict=True)):
        good = n % 4 == 0
        assert _is_there(store, user) == good
        assert _events_about(store, user) == (1 if good else 0)
        if good:
            assert result == user["id"]
        elif n % 4 == 1:
            assert isinstance(result, _Stop)
            assert result.args == (n,)
        elif n % 4 == 2:
            assert isinstance(result, UniqueViolation)
        else:
            assert isinstance(result, Exception)


def test_transactions_at_once_do_not_lose_each_others_changes(store: Store) -> None:
    """Sixty at once that each read a held row and write it anew count to sixty."""
    product = product_row(stock=0)

    async def add(tx: Writing) -> None:
        await tx.run(ADD_PRODUCT, **product)

    async def count(tx: Writing) -> int:
        row = await tx.row(statements_of(Product).lock, id=product["id"])
        assert row is not None
        stock = dict(zip(statements_of(Product).names, row, strict=True))["stock"] + 1
        await tx.run(sql("UPDATE products SET stock = :stock WHERE id = :id"), stock=stock, id=product["id"])
        return int(stock)

    store.write(add)
    assert sorted(store.writes(*[count] * 60)) == list(range(1, 61))


def test_a_waiter_that_gives_up_breaks_nothing(store: Store) -> None:
    """A request that is cancelled while its write runs leaves all of it or nothing, and others are served."""
    users = [user_row() for _ in range(20)]

    async def work() -> list[Any]:
        tasks = [asyncio.ensure_future(store.database.write(_adds(user))) for user in users]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = store.run(work())
    for n, (user, result) in enumerate(zip(users, found, strict=True)):
        there = _is_there(store, user)
        assert _events_about(store, user) == int(there)
        if n % 2:
            assert (result, there) == (user["id"], True)
    after = user_row()
    store.write(_adds(after))
    assert _is_there(store, after)


def test_two_databases_on_one_store_write_side_by_side(store: Store) -> None:
    """Two processes' worth of writers on one database: all is written, nobody is turned away."""
    other = Service(store.service.database_url)
    try:
        users = [user_row() for _ in range(60)]
        pair = (store, Store(other))
        running = [
            pair[n % 2].service.begin(pair[n % 2].database.write(_adds(user))) for n, user in enumerate(users)
        ]
        assert [each.result(60) for each in running] == [user["id"] for user in users]
        assert all(_is_there(pair[1], user) for user in users)
    finally:
        other.stop()


def test_reads_and_writes_count_their_statements(store: Store) -> None:
    """A transaction knows how many statements it took."""

    async def work(tx: Writing) -> int:
        await tx.run(ADD_USER, **user_row())
        await tx.row(statements_of(User).get, id="nobody")
        await tx.rows(sql("SELECT 1"))
        return tx.statements

    assert store.write(work) == 3


def test_a_changed_row_is_counted(store: Store) -> None:
    """run() tells how many rows it changed."""
    name = user_row()["email"]
    for _ in range(3):
        store.write(_adds(user_row(name=name)))

    async def work(tx: Writing) -> list[int]:
        change = sql("UPDATE users SET status = 'DEACTIVATED' WHERE name = :name")
        return [await tx.run(change, name=each) for each in (name, "nobody of this name")]

    assert store.write(work) == [3, 0]


def test_events_of_one_transaction_are_all_there_or_none(store: Store) -> None:
    """Transactions at once that each append several events, half of which fail: whole ones alone are in the log."""
    subjects = [user_row()["id"] for _ in range(30)]

    def appends(n: int) -> Work[None]:
        async def work(tx: Writing) -> None:
            for _ in range(3):
                await add_event(tx, subjects[n])
            if n % 2:
                raise _Stop

        return work

    store.writes(*[appends(n) for n in range(30)])
    told = Counter(subject for (subject,) in store.rows("SELECT subject FROM events"))
    assert [told[f"users/{subject}"] for subject in subjects] == [3, 0] * 15
