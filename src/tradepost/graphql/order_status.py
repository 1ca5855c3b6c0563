"""`orderStatusChanged`: the order, each time its status changes, from whichever process changed it.

The order's events come from the log, once each, after their commit; the order is read when it is pushed. The
feed is followed before the order is first read, so that no change is missed; a status that this first read
has seen is not pushed again.
"""

import asyncio
from collections.abc import AsyncGenerator

from tradepost.access.caller import Caller
from tradepost.domain.ids import is_id
from tradepost.domain.order import Order
from tradepost.events.feed import Feed, FeedEvent
from tradepost.graphql.context import Context
from tradepost.problems import NotFound
from tradepost.resource import Resource
from tradepost.storage import level
from tradepost.storage.database import Database, Reading, Row
from tradepost.storage.record_statements import statements_of

_STATUS_AT = statements_of(Order).names.index("status")
_DELETED = "DELETED"  # not a status: no change comes after it


class OrderStatus:
    """The source of `Subscription.orderStatusChanged`. Event types start with `prefix`."""

    def __init__(self, resource: Resource, database: Database, feed: Feed, prefix: str) -> None:
        self._resource = resource
        self._database = database
        self._feed = feed
        self._statuses = {
            f"{prefix}.order.fulfilled": "FULFILLED",
            f"{prefix}.order.cancelled": "CANCELLED",
            f"{prefix}.order.deleted": _DELETED,
        }

    async def changes(self, caller: Caller, order_id: str) -> AsyncGenerator[str]:
        """The id of the event of each change of the order's status, until it is deleted.

        Raises `Forbidden` unless the caller may read orders, and `NotFound` if there is no such order or it
        belongs to another user than the caller's.
        """
        Context(caller, self._database.reading()).admit(self._resource)
        events: asyncio.Queue[FeedEvent] = asyncio.Queue()

        def enqueue(event: FeedEvent) -> None:
            if event.type in self._statuses:
                events.put_nowait(event)

        subject = f"{Order.plural}/{order_id}"
        await self._feed.follow(subject, enqueue)
        try:
            row = await self.row(caller, self._database.reading(), order_id)
            if row is None:
                message = f"There is no order {order_id}"
                raise NotFound(message)
            seen = row[_STATUS_AT]
            while (status := self._statuses[(event := await events.get()).type]) != _DELETED:
                if status != seen:
                    seen = status
                    yield event.id
        finally:
            self._feed.leave(subject, enqueue)

    async def row(self, caller: Caller, reading: Reading, order_id: str) -> Row | None:
        """The order's row now; None if there is none, or it belongs to another user than the caller's."""
        owned = caller.user_id is not None
        owner = {"owner": caller.user_id} if owned else {}
        ids = [order_id] if is_id(order_id) else []
        rows = await reading.rows(level.by_ids(Order, owned=owned), ids=ids, **owner)
        return rows[0] if rows else None
