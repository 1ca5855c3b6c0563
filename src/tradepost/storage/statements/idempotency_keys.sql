-- name: claim
-- claims a key that is free or expired; no row if it is taken
INSERT INTO idempotency_keys (api_key_id, key, fingerprint, answer, expires_at)
VALUES (:api_key_id, :key, :fingerprint, NULL, :expires_at)
ON CONFLICT (api_key_id, key) DO UPDATE
SET fingerprint = excluded.fingerprint, answer = NULL, expires_at = excluded.expires_at
WHERE idempotency_keys.expires_at < :now
RETURNING api_key_id;

-- name: purge
-- forgets up to :limit expired keys
DELETE FROM idempotency_keys WHERE (api_key_id, key) IN (
    SELECT api_key_id, key FROM idempotency_keys WHERE expires_at < :now LIMIT :limit
);
