-- name: register
INSERT INTO embedding_identity (workspace, identity, settings) VALUES (:workspace, :identity, CAST(:settings AS jsonb))
ON CONFLICT DO NOTHING

-- name: registered
SELECT identity, settings, live, registered_at FROM embedding_identity
WHERE workspace = :workspace
ORDER BY live DESC, registered_at, identity

-- name: serving
SELECT coalesce(
    (SELECT identity FROM embedding_identity WHERE workspace = :workspace AND live), :configured) AS identity

-- name: unready
-- What keeps an identity from becoming the live one. A point that was tried in vain, and in vain for the live one too,
-- would be missing from recall after the switch as before.
SELECT count(*) AS points
FROM projection p
WHERE p.workspace = :workspace AND p.identity = :identity AND p.pending
    AND (p.attempts = 0 OR (CAST(:live AS text) IS NOT NULL AND NOT EXISTS (
        SELECT FROM projection l
        WHERE l.workspace = :workspace AND l.identity = :live AND l.collection = p.collection
            AND l.item_id = p.item_id AND l.pending AND l.attempts > 0)))

-- name: of_vectors
SELECT DISTINCT identity FROM embedding WHERE workspace = :workspace

-- name: forget_former
DELETE FROM embedding_identity
WHERE workspace = :workspace AND live AND identity <> :identity AND identity <> :configured

-- name: put_out
UPDATE embedding_identity SET live = false WHERE workspace = :workspace AND live AND identity <> :identity

-- name: make_live
UPDATE embedding_identity SET live = true WHERE workspace = :workspace AND NOT live AND identity = :identity

-- name: unregister
DELETE FROM embedding_identity WHERE workspace = :workspace AND identity = ANY(:identities)

-- name: forget_vectors
DELETE FROM embedding WHERE workspace = :workspace AND identity = :identity
