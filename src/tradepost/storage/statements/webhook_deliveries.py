"""Webhook deliveries: queued with their events, claimed under a lease, and what became of them.

Each endpoint has its queues in one index, by `later`: first attempts, their retries, and redeliveries. So
whatever waits for one endpoint costs nobody else anything, however much it is.
"""

from sqlalchemy import and_, bindparam, null, or_, text

from tradepost.domain.webhook_delivery import RETRY_SLOTS, SLOTS
from tradepost.storage.statement import Statement, spelled
from tradepost.storage.tables import BIG, webhook_deliveries

_DUE = "next_attempt_at IS NOT NULL AND lease IS NULL"  # what waits has a next attempt, whatever is over none
LANES_AT_ONCE = 256
LEASES_AT_ONCE = 4096

QUEUE = Statement(
    "queues a delivery",
    webhook_deliveries.insert().values({c.name: bindparam(c.name) for c in webhook_deliveries.c}),
)

# In the whole order of the one index that has it, whatever the statistics say: `min()`, or a shorter order,
# may be taken from another index, by walking all that waits or all that is over.
_WAITING = f"FROM webhook_deliveries {{by_due}} WHERE {_DUE}"
_FIRST_LANE = "ORDER BY endpoint_id, later, next_attempt_at LIMIT 1"
_FIRST_DUE = "ORDER BY next_attempt_at LIMIT 1"

LANES = Statement(
    "endpoints behind `after` for which something waits: when each queue is due, what is out, since when it"
    " fails; that is empty if it works, and null if it is not enabled",
    spelled(
        "WITH RECURSIVE lane(id, n) AS ("  # noqa: S608 (made of constants)
        f" SELECT (SELECT endpoint_id {_WAITING} AND endpoint_id > :after {_FIRST_LANE}), 1"
        f" UNION ALL SELECT (SELECT endpoint_id {_WAITING} AND endpoint_id > lane.id {_FIRST_LANE}), n + 1"
        f" FROM lane WHERE lane.id IS NOT NULL AND n < {LANES_AT_ONCE})"
        " SELECT lane.id,"
        f" (SELECT next_attempt_at {_WAITING} AND endpoint_id = lane.id AND later = 0 {_FIRST_DUE}),"
        f" (SELECT next_attempt_at {_WAITING} AND endpoint_id = lane.id AND later = 1 {_FIRST_DUE}),"
        f" (SELECT next_attempt_at {_WAITING} AND endpoint_id = lane.id AND later = 2 {_FIRST_DUE}),"
        " (SELECT count(*) FROM webhook_deliveries o {by_leased}"
        " WHERE o.lease IS NOT NULL AND o.endpoint_id = lane.id AND o.later >= 0),"
        " (SELECT coalesce(e.failing_since, '') FROM webhook_endpoints e"
        " WHERE e.id = lane.id AND e.status = 'ENABLED' AND e.deleted_at IS NULL)"
        " FROM lane WHERE lane.id IS NOT NULL",
        sqlite={  # else it walks all that is pending, or over
            "by_due": "INDEXED BY webhook_deliveries_due_idx",
            "by_leased": "INDEXED BY webhook_deliveries_leased_idx",
        },
        postgresql={"by_due": "", "by_leased": ""},
    ),
)

_QUEUE = (
    "SELECT q.id FROM webhook_deliveries q WHERE q.next_attempt_at IS NOT NULL AND q.lease IS NULL"
    " AND q.endpoint_id = lane.id AND q.later = {later}"
    " ORDER BY q.next_attempt_at LIMIT {limit}"
)
_QUEUES = (
    f"SELECT first.id FROM ({_QUEUE.format(later=0, limit=SLOTS)}) first"  # noqa: S608 (made of constants)
    f" UNION ALL SELECT retry.id FROM ({_QUEUE.format(later=1, limit=RETRY_SLOTS)}) retry"
    f" UNION ALL SELECT again.id FROM ({_QUEUE.format(later=2, limit=RETRY_SLOTS)}) again"
)

# Neither engine may look further into a queue than its first few rows. That they are due is asked of those
# alone: as a bound of the queue, with statistics from a time without any, it has PostgreSQL scan the table.
CANDIDATES = Statement(
    "what is due first in the queues of these endpoints, with its event and how many of each queue are out",
    spelled(
        "SELECT d.id, d.endpoint_id, d.later,"
        " (SELECT count(*) FROM webhook_deliveries o"
        " WHERE o.lease IS NOT NULL AND o.endpoint_id = d.endpoint_id AND o.later = 0),"
        " (SELECT count(*) FROM webhook_deliveries o"
        " WHERE o.lease IS NOT NULL AND o.endpoint_id = d.endpoint_id AND o.later > 0),"
        " d.attempt, d.attempts, d.next_attempt_at, d.event_id, d.event_type, d.created_at, d.source,"
        " e.id, e.source, e.type, e.subject, e.time, e.dataschema, e.data, e.traceparent"
        " FROM {queued} LEFT JOIN events e ON e.id = d.event_id {among} ORDER BY d.next_attempt_at, d.id",
        sqlite={
            "queued": f"webhook_endpoints lane CROSS JOIN webhook_deliveries d ON d.id IN ({_QUEUES})",
            "among": "WHERE lane.id IN (SELECT value FROM json_each(:lanes)) AND d.next_attempt_at <= :now",
        },
        postgresql={
            "queued": "webhook_deliveries d",
            "among": "WHERE d.id = ANY(ARRAY("  # noqa: S608 (made of constants)
            "SELECT next.id FROM unnest(CAST(:lanes AS text[])) lane(id)"
            f" CROSS JOIN LATERAL ({_QUEUES}) next)) AND d.next_attempt_at <= :now",
        },
    ),
)

LEASE = Statement(
    "claims deliveries under a lease, of those that are still due; which",
    spelled(
        "UPDATE webhook_deliveries SET lease = :lease, leased_until = :until"
        " WHERE id {any}ids{end}"  # by their ids: what else is asked must fit no index
        " AND coalesce(lease, '') = '' AND coalesce(next_attempt_at, '~') <= :now RETURNING id"
    ),
)

CONCLUDE = Statement(
    "writes down what an attempt came to, if its lease holds, or it was put back and not claimed since",
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

RELEASE = Statement(
    "puts back deliveries that are still claimed under these leases",
    spelled(
        "UPDATE webhook_deliveries SET lease = NULL, leased_until = NULL"
        " WHERE id {any}ids{end} AND lease {any}leases{end}"
    ),
)

LEASES = Statement(
    "deliveries that are out, from an endpoint on, under which leases, and when those are over",
    spelled(
        "SELECT endpoint_id, id, lease, leased_until FROM webhook_deliveries"  # noqa: S608 (a constant)
        # In the order of its index, whatever the statistics say.
        " WHERE lease IS NOT NULL AND endpoint_id >= :since"
        f" ORDER BY endpoint_id, later LIMIT {LEASES_AT_ONCE}"
    ),
)

ANY_REDELIVERY = Statement(
    "whether there is a redelivery whose deliveries are not all made",
    spelled("SELECT id FROM webhook_redeliveries WHERE finished_at IS NULL LIMIT 1"),
)

PURGE = Statement(
    "forgets a bounded number of finished deliveries from before an id",
    spelled(
        "DELETE FROM webhook_deliveries WHERE id {any_of}SELECT id FROM webhook_deliveries"
        " WHERE status = :status AND id < :before AND updated_at < :then ORDER BY id LIMIT 1000{end_of}"
    ),
)

ABANDON = Statement(
    "abandons a bounded number of deliveries to endpoints that were deleted",
    spelled(
        "UPDATE webhook_deliveries SET status = 'ABANDONED', next_attempt_at = NULL, updated_at = :now"
        " WHERE id {any_of}SELECT d.id FROM webhook_endpoints e JOIN webhook_deliveries d"
        " ON d.endpoint_id = e.id AND d.next_attempt_at IS NOT NULL AND d.lease IS NULL"
        " WHERE e.deleted_at IS NOT NULL LIMIT 1000{end_of}"
    ),
)

BACKLOG = Statement(
    "how many deliveries wait for enabled endpoints and are not out, and since when the first is due",
    spelled(
        "SELECT count(*), min(d.next_attempt_at) FROM webhook_deliveries d"
        " JOIN webhook_endpoints e ON e.id = d.endpoint_id"
        " WHERE d.next_attempt_at IS NOT NULL AND d.lease IS NULL"
        " AND e.status = 'ENABLED' AND e.deleted_at IS NULL"
    ),
    bounded=False,
)
