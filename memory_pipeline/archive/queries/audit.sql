-- name: expected
SELECT p.item_id, p.wanted, p.pending, CASE WHEN p.wanted IS NOT NULL THEN coalesce(c.version, 1) END AS version
FROM projection p
LEFT JOIN card c ON c.workspace = p.workspace AND c.card_id = p.item_id
WHERE p.workspace = :workspace AND p.identity = :identity AND p.collection = :collection AND p.item_id = ANY(:items)
UNION ALL
-- A workspace that keeps no projections for the identity wants a point for everything, from now on.
SELECT e.item_id, e.fingerprint, true, e.version
FROM (
    SELECT card_id AS item_id, collection_of(family) AS collection, fingerprint, version
    FROM card WHERE workspace = :workspace AND card_id = ANY(:items)
    UNION ALL
    SELECT question_id, 'questions', fingerprint, 1
    FROM question WHERE workspace = :workspace AND question_id = ANY(:items)) AS e
WHERE e.collection = :collection
    AND NOT EXISTS (SELECT FROM embedding_identity WHERE workspace = :workspace AND identity = :identity)

-- name: certified
-- By the primary key, a page after the other: no page reads what was read before.
SELECT p.item_id, p.wanted, p.pending, coalesce(c.version, 1) AS version
FROM projection p
LEFT JOIN card c ON c.workspace = p.workspace AND c.card_id = p.item_id
WHERE p.workspace = :workspace AND p.identity = :identity AND p.collection = :collection
    AND p.item_id > :after AND NOT p.pending
ORDER BY p.item_id
LIMIT :limit

-- name: certification
SELECT count(*) AS items, max(certified_at) AS latest
FROM projection
WHERE workspace = :workspace AND identity = :identity AND collection = :collection AND NOT pending

-- name: distrust_collection
-- What was pending already keeps its place, its reason and its next try.
UPDATE projection
SET pending = true, certified = NULL, wanted_at = clock_timestamp(), attempts = 0, next_try = NULL, reason = :reason
WHERE workspace = :workspace AND identity = :identity AND collection = :collection AND NOT pending

-- name: record
INSERT INTO last_audit (workspace, at, checked, differing, repaired)
VALUES (:workspace, clock_timestamp(), :checked, CAST(:differing AS jsonb), :repaired)
ON CONFLICT (workspace) DO UPDATE
SET at = excluded.at, checked = excluded.checked, differing = excluded.differing, repaired = excluded.repaired
RETURNING at

-- name: last
SELECT at, checked, differing, repaired FROM last_audit WHERE workspace = :workspace
