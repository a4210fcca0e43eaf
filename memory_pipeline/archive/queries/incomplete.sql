-- name: incomplete
-- A workspace that keeps no projections for the identity wants a point for everything, from now on.
SELECT points.item_id, points.collection, points.wanted IS NULL AS removal, points.reason, points.attempts,
    points.next_try, points.wanted_at AS since,
    left(coalesce(nullif(card.subject, ''), card.question, question.text), 200) AS title
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
LEFT JOIN card ON card.workspace = :workspace AND card.card_id = points.item_id
LEFT JOIN question ON question.workspace = :workspace AND question.question_id = points.item_id
WHERE :everything OR points.item_id = ANY(:items)
ORDER BY since, points.item_id COLLATE "C"

-- name: questions_behind
SELECT DISTINCT question_id
FROM card_source
WHERE workspace = :workspace AND card_id = ANY(:card_ids) AND question_id IS NOT NULL

-- name: known
-- A deleted card is known for as long as its point has to be removed.
SELECT EXISTS (SELECT FROM card WHERE workspace = :workspace AND card_id = :card_id)
    OR EXISTS (SELECT FROM projection WHERE workspace = :workspace AND item_id = :card_id) AS known
