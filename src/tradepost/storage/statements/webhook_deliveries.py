"""Webhook deliveries: queued with their events, claimed under leases, and completed.

One index has the queues of each endpoint, by `later`: first attempts, retries and redeliveries. So the
backlog of one endpoint, however long, costs other endpoints nothing.
"""

from sqlalchemy import and_, bindparam, null, or_, text

from tradepost.domain.webhook_delivery import RETRY_SLOTS, SLOTS
from tradepost.storage.sql import sql
from tradepost.storage.statement import Statement
from tradepost.storage.tables import BIG, webhook_deliveries

LANES_AT_ONCE = 256  # endpoints in one look
LEASES_AT_ONCE = 4096  # deliveries

QUEUE = Statement(
    "queues a delivery",
    webhook_deliveries.insert().values({c.name: bindparam(c.name) for c in webhook_deliveries.c}),
)

LANES = sql("webhook_deliveries.lanes", limit=LANES_AT_ONCE)
CANDIDATES = sql("webhook_deliveries.candidates", slots=SLOTS, retry_slots=RETRY_SLOTS)
LEASE = sql("webhook_deliveries.lease")

CONCLUDE = Statement(
    "stores the result of an attempt if its lease is valid, or was released and not claimed since",
    webhook_deliveries.update()
    .where(
        webhook_deliveries.c.id == bindparam("at_id"),
        or_(
            webhook_deliveries.c.lease == bindparam("at_lease"),
            and_(
                webhook_deliveries.c.lease.is_(None),
                webhook_deliveries.c.next_attempt_at.is_not(None),
                webhook_deliveries.c.attempt == bindparam("at_attempt", type_=BIG),
            ),
        ),
    )
    .values(
        status=bindparam("new_status"),
        attempts=bindparam("new_attempts"),
        attempt=bindparam("new_attempt"),
        next_attempt_at=bindparam("new_next_attempt_at"),
        updated_at=bindparam("new_updated_at"),
        later=text("1"),
        lease=null(),
        leased_until=null(),
    ),
)

RELEASE = sql("webhook_deliveries.release")
LEASES = sql("webhook_deliveries.leases", limit=LEASES_AT_ONCE)
PURGE = sql("webhook_deliveries.purge")
ABANDON = sql("webhook_deliveries.abandon")
BACKLOG = sql("webhook_deliveries.backlog", bounded=False)
ANY_REDELIVERY = sql("webhook_deliveries.any_redelivery")
