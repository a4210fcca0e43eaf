-- name: cards
-- By the primary key, a page after the other. What has more behind it ranks higher, and is what a merge keeps.
SELECT c.card_id, c.family, c.subject, c.detail, c.edited, (
    SELECT count(*) FROM card_source s WHERE s.workspace = c.workspace AND s.card_id = c.card_id
) AS sources
FROM card c
WHERE c.workspace = :workspace AND c.card_id > :after AND c.family = ANY(:families)
ORDER BY c.card_id
LIMIT :limit

-- name: linked
SELECT source_id, target_id FROM card_link WHERE workspace = :workspace

-- name: shown
SELECT card_id, version, family, subject, detail
FROM card
WHERE workspace = :workspace AND card_id = ANY(:card_ids)
