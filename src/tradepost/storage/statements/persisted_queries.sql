-- name: keep
-- keeps a document, or notes that it is used
INSERT INTO persisted_queries (hash, document, used_at) VALUES (:hash, :document, :now)
ON CONFLICT (hash) DO UPDATE SET used_at = excluded.used_at;

-- name: trim
-- forgets all but the :kept documents that were used last; to be run where one is kept
DELETE FROM persisted_queries WHERE hash IN (
    SELECT hash FROM persisted_queries
    ORDER BY used_at DESC, hash DESC LIMIT 9223372036854775807 OFFSET :kept
);
