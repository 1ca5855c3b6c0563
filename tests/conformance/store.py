"""A database under test: works on it run on the service's own loop, beside nobody."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from sqlalchemy import text

from tests import shop
from tests.service import Service
from tradepost.catalogue import event_types
from tradepost.clock import Clock
from tradepost.domain.ids import Ids
from tradepost.domain.product import Product
from tradepost.domain.user import User
from tradepost.events.outbox import Emitter, Happened, Outbox
from tradepost.storage.database import Database, Reading, Row, Writing
from tradepost.storage.record_statements import statements_of
from tradepost.storage.statement import Statement

T = TypeVar("T")
Work = Callable[[Writing], Awaitable[T]]

AT = "2026-11-20T08:15:30.123Z"
EMITTER = Emitter("dev.tradepost", event_types())
IDS = Ids()


def sql(statement: str) -> Statement:
    return Statement("what a test needs", text(statement))


def user_row(**values: Any) -> dict[str, Any]:
    """All columns of a new user."""
    email = f"{shop.unique()}@shop.example"
    row = {
        "id": IDS.new(1),
        "name": "Ada",
        "email": email,
        "email_key": email,
        "status": "ACTIVE",
        "version": 1,
    }
    return {**row, "created_at": AT, "updated_at": AT, "deleted_at": None, **values}


def product_row(**values: Any) -> dict[str, Any]:
    """All columns of a new product."""
    row = {"id": IDS.new(1), "sku": shop.unique(), "name": "Lantern", "description": None, "price": 25_000}
    row |= {"currency": "GBP", "stock": 10, "status": "ACTIVE", "version": 1}
    return {**row, "created_at": AT, "updated_at": AT, "deleted_at": None, **values}


ADD_USER, ADD_PRODUCT = statements_of(User).insert, statements_of(Product).insert


async def add_event(tx: Writing, subject: str) -> str:
    """Appends an event about a user called `subject`; its id."""
    event_id = IDS.new(Clock().now_ms())  # as old as 1970 it would be forgotten at once
    happened = [Happened(event_id, "user.updated", "users", subject)]
    await Outbox(EMITTER, "http://shop.example", AT, None, lambda: IDS.new(1)).append(tx, happened)
    return event_id


class Store:
    """A database, and the ways a test uses it."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.database: Database = service.app.rest.performer.database

    def run(self, work: Awaitable[T]) -> T:
        return self.service.run(work)

    def write(self, work: Work[T]) -> T:
        """One transaction, from outside any loop."""
        return self.run(self.database.write(work))

    def writes(self, *works: Work[Any]) -> list[Any]:
        """Transactions at once; what each returned or raised."""

        async def all_() -> list[Any]:
            return await asyncio.gather(
                *[self.database.write(each) for each in works], return_exceptions=True
            )

        return self.run(all_())

    def rows(self, statement: str) -> list[Row]:
        """What a reader sees."""
        return self.read(sql(statement))

    def read(self, statement: Statement, **given: Any) -> list[Row]:
        async def read() -> list[Row]:
            reading: Reading = self.database.reading()
            return await reading.rows(statement, **given)

        return self.run(read())

    def count(self, table: str) -> int:
        found: int = self.rows(f"SELECT count(*) FROM {table}")[0][0]
        return found
