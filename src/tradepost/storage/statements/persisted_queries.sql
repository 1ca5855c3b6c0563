-- name: keep
-- stores a document, or records its last use
INSERT INTO persisted_queries (hash, document, used_at) VALUES (:hash, :document, :now)
ON CONFLICT (hash) DO UPDATE SET used_at = excluded.used_at;

-- name: trim
-- deletes all but the :kept most recently used documents; run it whenever one is stored
DELETE FROM persisted_queries WHERE hash IN (
    SELECT hash FROM persisted_queries
    ORDER BY used_at DESC, hash DESC LIMIT 9223372036854775807 OFFSET :kept
);
