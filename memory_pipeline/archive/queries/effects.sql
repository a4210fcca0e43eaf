-- name: of_session
-- The cards that a session stands behind now, and others by id, with what a decision may change of them.
SELECT c.card_id, c.family, c.version, c.created_at, c.updated_at, c.subject || c.question AS title, c.flags, (
    SELECT count(*) FROM card_source s WHERE s.workspace = c.workspace AND s.card_id = c.card_id
) AS sources, ARRAY(
    SELECT s.seq FROM card_source s
    WHERE s.workspace = c.workspace AND s.card_id = c.card_id AND s.session_id = :session_id ORDER BY s.seq
) AS seqs
FROM card c
WHERE c.workspace = :workspace AND (c.card_id = ANY(:card_ids) OR c.card_id IN (
    SELECT s.card_id FROM card_source s WHERE s.workspace = :workspace AND s.session_id = :session_id))
ORDER BY c.card_id COLLATE "C"

-- name: moment
SELECT now() AS now FROM workspace WHERE workspace = :workspace
