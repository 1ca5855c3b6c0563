-- name: reserve
-- reserves a key that is unused or expired; returns no row if it is in use
INSERT INTO idempotency_keys (api_key_id, key, fingerprint, answer, expires_at)
VALUES (:api_key_id, :key, :fingerprint, NULL, :expires_at)
ON CONFLICT (api_key_id, key) DO UPDATE
SET fingerprint = excluded.fingerprint, answer = NULL, expires_at = excluded.expires_at
WHERE idempotency_keys.expires_at < :now
RETURNING api_key_id;

-- name: purge
-- deletes up to :limit expired keys
DELETE FROM idempotency_keys WHERE (api_key_id, key) IN (
    SELECT api_key_id, key FROM idempotency_keys WHERE expires_at < :now LIMIT :limit
);
