-- name: moment (sqlite)
-- which events are in the log now: a snapshot of PostgreSQL's transactions, and SQLite's last sequence number
SELECT '0:0:', coalesce(max(seq), 0) FROM events;

-- name: moment (postgresql)
SELECT pg_current_snapshot()::text, 0;

-- name: after (sqlite)
-- what was committed to the log after a position, and the horizon: what is below it is final
--
-- SQLite seeks a pair by its first half alone, and would walk the whole log; there `xid` is always 0.
SELECT 1, xid, seq, id, type, subject, time FROM events
WHERE xid = 0 AND seq > :seq
ORDER BY xid, seq LIMIT :limit;

-- name: after (postgresql)
SELECT (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint), xid, seq, id, type, subject, time
FROM events
WHERE (xid, seq) > (:xid, :seq)
ORDER BY xid, seq LIMIT :limit;

-- name: piece
-- the last of the next :limit events after an id and before another
SELECT max(id) FROM (
    SELECT id FROM events WHERE id > :after AND id < :before ORDER BY id LIMIT :limit
) piece;

-- name: purge
-- forgets the events of a piece, but for those that are still to be delivered
--
-- The newest event stays: SQLite counts on from it, so that no position is ever given twice.
DELETE FROM events
WHERE id > :after AND id <= :upto AND seq < (SELECT max(seq) FROM events) AND NOT EXISTS (
    SELECT 1 FROM webhook_deliveries d WHERE d.event_id = events.id AND d.next_attempt_at IS NOT NULL
);
