-- name: lanes (sqlite)
-- the next endpoints, up to :limit after :after, that have deliveries waiting
--
-- Each subquery follows the complete order of one index, regardless of statistics: for `min()`, or a shorter
-- order, a planner may choose another index and scan all waiting or all finished deliveries.
WITH RECURSIVE lane(id, n) AS (
    SELECT (
        SELECT endpoint_id FROM webhook_deliveries INDEXED BY webhook_deliveries_due_idx
        WHERE next_attempt_at IS NOT NULL AND lease IS NULL AND endpoint_id > :after
        ORDER BY endpoint_id, later, next_attempt_at LIMIT 1
    ), 1
    UNION ALL
    SELECT (
        SELECT endpoint_id FROM webhook_deliveries INDEXED BY webhook_deliveries_due_idx
        WHERE next_attempt_at IS NOT NULL AND lease IS NULL AND endpoint_id > lane.id
        ORDER BY endpoint_id, later, next_attempt_at LIMIT 1
    ), n + 1
    FROM lane WHERE lane.id IS NOT NULL AND n < :limit
)
SELECT
    lane.id,
    -- when the first delivery of each queue is due: first attempts, retries, redeliveries
    (
        SELECT next_attempt_at FROM webhook_deliveries INDEXED BY webhook_deliveries_due_idx
        WHERE next_attempt_at IS NOT NULL AND lease IS NULL AND endpoint_id = lane.id AND later = 0
        ORDER BY next_attempt_at LIMIT 1
    ),
    (
        SELECT next_attempt_at FROM webhook_deliveries INDEXED BY webhook_deliveries_due_idx
        WHERE next_attempt_at IS NOT NULL AND lease IS NULL AND endpoint_id = lane.id AND later = 1
        ORDER BY next_attempt_at LIMIT 1
    ),
    (
        SELECT next_attempt_at FROM webhook_deliveries INDEXED BY webhook_deliveries_due_idx
        WHERE next_attempt_at IS NOT NULL AND lease IS NULL AND endpoint_id = lane.id AND later = 2
        ORDER BY next_attempt_at LIMIT 1
    ),
    -- the number in flight
    (
        SELECT count(*) FROM webhook_deliveries o INDEXED BY webhook_deliveries_leased_idx
        WHERE o.lease IS NOT NULL AND o.endpoint_id = lane.id AND o.later >= 0
    ),
    -- since when the endpoint has been failing: empty if it works, null if it is not enabled
    (
        SELECT coalesce(e.failing_since, '') FROM webhook_endpoints e
        WHERE e.id = lane.id AND e.status = 'ENABLED' AND e.deleted_at IS NULL
    )
FROM lane WHERE lane.id IS NOT NULL;

-- name: lanes (postgresql)
WITH RECURSIVE lane(id, n) AS (
    SELECT (
        SELECT endpoint_id FROM webhook_deliveries
        WHERE next_attempt_at IS NOT NULL AND lease IS NULL AND endpoint_id > :after
        ORDER BY endpoint_id, later, next_attempt_at LIMIT 1
    ), 1
    UNION ALL
    SELECT (
        SELECT endpoint_id FROM webhook_deliveries
        WHERE next_attempt_at IS NOT NULL AND lease IS NULL AND endpoint_id > lane.id
        ORDER BY endpoint_id, later, next_attempt_at LIMIT 1
    ), n + 1
    FROM lane WHERE lane.id IS NOT NULL AND n < :limit
)
SELECT
    lane.id,
    (
        SELECT next_attempt_at FROM webhook_deliveries
        WHERE next_attempt_at IS NOT NULL AND lease IS NULL AND endpoint_id = lane.id AND later = 0
        ORDER BY next_attempt_at LIMIT 1
    ),
    (
        SELECT next_attempt_at FROM webhook_deliveries
        WHERE next_attempt_at IS NOT NULL AND lease IS NULL AND endpoint_id = lane.id AND later = 1
        ORDER BY next_attempt_at LIMIT 1
    ),
    (
        SELECT next_attempt_at FROM webhook_deliveries
        WHERE next_attempt_at IS NOT NULL AND lease IS NULL AND endpoint_id = lane.id AND later = 2
        ORDER BY next_attempt_at LIMIT 1
    ),
    (
        SELECT count(*) FROM webhook_deliveries o
        WHERE o.lease IS NOT NULL AND o.endpoint_id = lane.id AND o.later >= 0
    ),
    (
        SELECT coalesce(e.failing_since, '') FROM webhook_endpoints e
        WHERE e.id = lane.id AND e.status = 'ENABLED' AND e.deleted_at IS NULL
    )
FROM lane WHERE lane.id IS NOT NULL;

-- name: candidates (sqlite)
-- the first due deliveries of the queues of these endpoints, with their events and the numbers in flight
--
-- Neither engine may read more than the first few rows of a queue. Only these are checked for being due: as a
-- condition on the queue, and with statistics of an empty table, it makes PostgreSQL scan the whole table.
SELECT
    d.id, d.endpoint_id, d.later,
    -- the numbers in flight: first attempts, and all others
    (
        SELECT count(*) FROM webhook_deliveries o
        WHERE o.lease IS NOT NULL AND o.endpoint_id = d.endpoint_id AND o.later = 0
    ),
    (
        SELECT count(*) FROM webhook_deliveries o
        WHERE o.lease IS NOT NULL AND o.endpoint_id = d.endpoint_id AND o.later > 0
    ),
    d.attempt, d.attempts, d.next_attempt_at, d.event_id, d.event_type, d.created_at, d.source,
    e.id, e.source, e.type, e.subject, e.time, e.dataschema, e.data, e.traceparent
FROM webhook_endpoints lane
CROSS JOIN webhook_deliveries d ON d.id IN (
    SELECT first.id FROM (
        SELECT q.id FROM webhook_deliveries q
        WHERE q.next_attempt_at IS NOT NULL AND q.lease IS NULL AND q.endpoint_id = lane.id AND q.later = 0
        ORDER BY q.next_attempt_at LIMIT :slots
    ) first
    UNION ALL
    SELECT retry.id FROM (
        SELECT q.id FROM webhook_deliveries q
        WHERE q.next_attempt_at IS NOT NULL AND q.lease IS NULL AND q.endpoint_id = lane.id AND q.later = 1
        ORDER BY q.next_attempt_at LIMIT :retry_slots
    ) retry
    UNION ALL
    SELECT again.id FROM (
        SELECT q.id FROM webhook_deliveries q
        WHERE q.next_attempt_at IS NOT NULL AND q.lease IS NULL AND q.endpoint_id = lane.id AND q.later = 2
        ORDER BY q.next_attempt_at LIMIT :retry_slots
    ) again
)
LEFT JOIN events e ON e.id = d.event_id
WHERE lane.id IN (SELECT value FROM json_each(:lanes)) AND d.next_attempt_at <= :now
ORDER BY d.next_attempt_at, d.id;

-- name: candidates (postgresql)
SELECT
    d.id, d.endpoint_id, d.later,
    (
        SELECT count(*) FROM webhook_deliveries o
        WHERE o.lease IS NOT NULL AND o.endpoint_id = d.endpoint_id AND o.later = 0
    ),
    (
        SELECT count(*) FROM webhook_deliveries o
        WHERE o.lease IS NOT NULL AND o.endpoint_id = d.endpoint_id AND o.later > 0
    ),
    d.attempt, d.attempts, d.next_attempt_at, d.event_id, d.event_type, d.created_at, d.source,
    e.id, e.source, e.type, e.subject, e.time, e.dataschema, e.data, e.traceparent
FROM webhook_deliveries d
LEFT JOIN events e ON e.id = d.event_id
WHERE d.next_attempt_at <= :now AND d.id = ANY(ARRAY(
    SELECT next.id FROM unnest(CAST(:lanes AS text[])) lane(id)
    CROSS JOIN LATERAL (
        SELECT first.id FROM (
            SELECT q.id FROM webhook_deliveries q
            WHERE q.next_attempt_at IS NOT NULL AND q.lease IS NULL AND q.endpoint_id = lane.id AND q.later = 0
            ORDER BY q.next_attempt_at LIMIT :slots
        ) first
        UNION ALL
        SELECT retry.id FROM (
            SELECT q.id FROM webhook_deliveries q
            WHERE q.next_attempt_at IS NOT NULL AND q.lease IS NULL AND q.endpoint_id = lane.id AND q.later = 1
            ORDER BY q.next_attempt_at LIMIT :retry_slots
        ) retry
        UNION ALL
        SELECT again.id FROM (
            SELECT q.id FROM webhook_deliveries q
            WHERE q.next_attempt_at IS NOT NULL AND q.lease IS NULL AND q.endpoint_id = lane.id AND q.later = 2
            ORDER BY q.next_attempt_at LIMIT :retry_slots
        ) again
    ) next
))
ORDER BY d.next_attempt_at, d.id;

-- name: lease (sqlite)
-- claims those of these deliveries that are still due under a lease, and returns their ids
--
-- They are found by id: the other conditions are written so that no index fits them.
UPDATE webhook_deliveries SET lease = :lease, leased_until = :until
WHERE id IN (SELECT value FROM json_each(:ids))
    AND coalesce(lease, '') = '' AND coalesce(next_attempt_at, '~') <= :now
RETURNING id;

-- name: lease (postgresql)
UPDATE webhook_deliveries SET lease = :lease, leased_until = :until
WHERE id = ANY(CAST(:ids AS text[]))
    AND coalesce(lease, '') = '' AND coalesce(next_attempt_at, '~') <= :now
RETURNING id;

-- name: release (sqlite)
-- releases deliveries that are still claimed under these leases
UPDATE webhook_deliveries SET lease = NULL, leased_until = NULL
WHERE id IN (SELECT value FROM json_each(:ids)) AND lease IN (SELECT value FROM json_each(:leases));

-- name: release (postgresql)
UPDATE webhook_deliveries SET lease = NULL, leased_until = NULL
WHERE id = ANY(CAST(:ids AS text[])) AND lease = ANY(CAST(:leases AS text[]));

-- name: leases
-- the deliveries in flight, starting at an endpoint, with their leases and when these expire
--
-- They follow the order of the index of leased deliveries, regardless of statistics.
SELECT endpoint_id, id, lease, leased_until FROM webhook_deliveries
WHERE lease IS NOT NULL AND endpoint_id >= :since
ORDER BY endpoint_id, later LIMIT :limit;

-- name: purge (sqlite)
-- deletes up to :limit finished deliveries before an id
DELETE FROM webhook_deliveries WHERE id IN (
    SELECT id FROM webhook_deliveries
    WHERE status = :status AND id < :before AND updated_at < :then
    ORDER BY id LIMIT :limit
);

-- name: purge (postgresql)
DELETE FROM webhook_deliveries WHERE id = ANY(ARRAY(
    SELECT id FROM webhook_deliveries
    WHERE status = :status AND id < :before AND updated_at < :then
    ORDER BY id LIMIT :limit
));

-- name: abandon (sqlite)
-- abandons up to :limit deliveries to deleted endpoints
UPDATE webhook_deliveries SET status = 'ABANDONED', next_attempt_at = NULL, updated_at = :now
WHERE id IN (
    SELECT d.id FROM webhook_endpoints e
    JOIN webhook_deliveries d
        ON d.endpoint_id = e.id AND d.next_attempt_at IS NOT NULL AND d.lease IS NULL
    WHERE e.deleted_at IS NOT NULL LIMIT :limit
);

-- name: abandon (postgresql)
UPDATE webhook_deliveries SET status = 'ABANDONED', next_attempt_at = NULL, updated_at = :now
WHERE id = ANY(ARRAY(
    SELECT d.id FROM webhook_endpoints e
    JOIN webhook_deliveries d
        ON d.endpoint_id = e.id AND d.next_attempt_at IS NOT NULL AND d.lease IS NULL
    WHERE e.deleted_at IS NOT NULL LIMIT :limit
));

-- name: backlog
-- the number of deliveries that wait for enabled endpoints, and when the first of them is due
SELECT count(*), min(d.next_attempt_at) FROM webhook_deliveries d
JOIN webhook_endpoints e ON e.id = d.endpoint_id
WHERE d.next_attempt_at IS NOT NULL AND d.lease IS NULL AND e.status = 'ENABLED' AND e.deleted_at IS NULL;

-- name: any_redelivery
-- whether any redelivery is unfinished
SELECT id FROM webhook_redeliveries WHERE finished_at IS NULL LIMIT 1;
