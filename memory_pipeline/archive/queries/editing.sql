-- name: mark_edited
-- From now on no ledger overwrites it.
UPDATE card SET edited = true WHERE workspace = :workspace AND card_id = :card_id

-- name: count_version
-- For links that were changed from their other ends. No ledger's word gives way to that.
UPDATE card SET version = version + 1, updated_at = now(), updated_by = :principal
WHERE workspace = :workspace AND card_id = ANY(:card_ids)

-- name: save_link
INSERT INTO card_link (workspace, source_id, target_id, meaning)
VALUES (:workspace, :source, :target, :meaning)
ON CONFLICT (workspace, source_id, target_id) DO UPDATE SET meaning = excluded.meaning
WHERE card_link.meaning <> excluded.meaning

-- name: remove_link
DELETE FROM card_link WHERE workspace = :workspace AND source_id = :source AND target_id = :target

-- name: move_sources
UPDATE card_source SET card_id = :keep WHERE workspace = :workspace AND card_id = :other

-- name: copy_links_out
-- Where both cards have a link with the same meaning or not, the one of the card that is kept stays.
INSERT INTO card_link (workspace, source_id, target_id, meaning)
SELECT workspace, :keep, target_id, meaning FROM card_link
WHERE workspace = :workspace AND source_id = :other AND target_id <> :keep
ON CONFLICT DO NOTHING
RETURNING target_id AS other

-- name: copy_links_in
INSERT INTO card_link (workspace, source_id, target_id, meaning)
SELECT workspace, source_id, :keep, meaning FROM card_link
WHERE workspace = :workspace AND target_id = :other AND source_id <> :keep
ON CONFLICT DO NOTHING
RETURNING source_id AS other

-- name: links
SELECT target_id AS other, meaning, true AS outgoing FROM card_link
WHERE workspace = :workspace AND source_id = :card_id
UNION ALL
SELECT source_id, meaning, false FROM card_link
WHERE workspace = :workspace AND target_id = :card_id
ORDER BY outgoing DESC, other
