-- name: moment (sqlite)
-- the end of the log: a snapshot of PostgreSQL's transactions, or SQLite's last sequence number
SELECT '0:0:', coalesce(max(seq), 0) FROM events;

-- name: moment (postgresql)
SELECT pg_current_snapshot()::text, 0;

-- name: after (sqlite)
-- the events after a position, each with the horizon, below which events are final
--
-- SQLite seeks a pair by its first half only and would scan the whole log; there, `xid` is always 0.
SELECT 1, xid, seq, id, type, subject, time FROM events
WHERE xid = 0 AND seq > :seq
ORDER BY xid, seq LIMIT :limit;

-- name: after (postgresql)
SELECT (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint), xid, seq, id, type, subject, time
FROM events
WHERE (xid, seq) > (:xid, :seq)
ORDER BY xid, seq LIMIT :limit;

-- name: batch_end
-- the id of the last of the next :limit events after one id and before another
SELECT max(id) FROM (
    SELECT id FROM events WHERE id > :after AND id < :before ORDER BY id LIMIT :limit
) batch;

-- name: purge
-- deletes the events of a batch, except those that are still to be delivered
--
-- The newest event stays: SQLite continues its sequence from it, so that no position is used twice.
DELETE FROM events
WHERE id > :after AND id <= :upto AND seq < (SELECT max(seq) FROM events) AND NOT EXISTS (
    SELECT 1 FROM webhook_deliveries d WHERE d.event_id = events.id AND d.next_attempt_at IS NOT NULL
);
