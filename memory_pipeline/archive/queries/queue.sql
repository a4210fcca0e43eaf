-- name: submit
INSERT INTO admin_edit (workspace, principal, operation, card_id, merged_id, content)
VALUES (:workspace, :principal, :operation, :card_id, :merged_id, CAST(:content AS jsonb))

-- name: next
SELECT edit_id, principal, operation, card_id, content
FROM admin_edit
WHERE workspace = :workspace AND state = 'waiting'
ORDER BY edit_id
LIMIT 1

-- name: still_waiting
SELECT edit_id FROM admin_edit
WHERE workspace = :workspace AND edit_id = :edit_id AND state = 'waiting'
FOR UPDATE

-- name: applied
-- Who did what to which card, and when, stays; what the card was given does not.
UPDATE admin_edit SET state = 'applied', card_id = :card_id, content = NULL, reason = NULL, finished_at = now()
WHERE workspace = :workspace AND edit_id = :edit_id AND state = 'waiting'

-- name: refused
UPDATE admin_edit SET state = 'refused', reason = :reason, finished_at = now()
WHERE workspace = :workspace AND edit_id = :edit_id AND state = 'waiting'

-- name: discard
UPDATE admin_edit
SET content = NULL, state = 'refused', reason = :reason, finished_at = coalesce(finished_at, now())
WHERE workspace = :workspace AND edit_id = ANY(:edit_ids) AND state IN ('waiting', 'refused') AND content IS NOT NULL
RETURNING edit_id

-- name: listed
-- The latest of them, in the order in which they were submitted.
SELECT edit_id, principal, submitted_at, operation, card_id, merged_id, content, state, reason, finished_at
FROM (
    SELECT * FROM admin_edit
    WHERE workspace = :workspace AND (CAST(:state AS text) IS NULL OR state = :state)
    ORDER BY edit_id DESC
    LIMIT :limit) AS latest
ORDER BY edit_id

-- name: counts
SELECT state, count(*) AS edits FROM admin_edit WHERE workspace = :workspace GROUP BY state
