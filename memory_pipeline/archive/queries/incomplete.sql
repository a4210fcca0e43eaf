-- name: incomplete
-- A workspace that keeps no projections for the identity wants a point for everything, from now on.
SELECT item_id, collection, wanted IS NULL AS removal, reason, attempts, next_try, wanted_at AS since
FROM (
    SELECT item_id, collection, wanted, reason, attempts, next_try, wanted_at
    FROM projection
    WHERE workspace = :workspace AND identity = :identity AND pending
    UNION ALL
    SELECT item_id, collection, fingerprint, NULL, 0, NULL, now()
    FROM (
        SELECT card_id AS item_id, collection_of(family) AS collection, fingerprint
        FROM card WHERE workspace = :workspace
        UNION ALL
        SELECT question_id, 'questions', fingerprint FROM question WHERE workspace = :workspace) AS everything
    WHERE NOT EXISTS (SELECT FROM embedding_identity WHERE workspace = :workspace AND identity = :identity)
) AS points
WHERE :everything OR item_id = ANY(:items)
ORDER BY since, item_id COLLATE "C"

-- name: questions_behind
SELECT DISTINCT question_id
FROM card_source
WHERE workspace = :workspace AND card_id = ANY(:card_ids) AND question_id IS NOT NULL

-- name: known
-- A deleted card is known for as long as its point has to be removed.
SELECT EXISTS (SELECT FROM card WHERE workspace = :workspace AND card_id = :card_id)
    OR EXISTS (SELECT FROM projection WHERE workspace = :workspace AND item_id = :card_id) AS known
