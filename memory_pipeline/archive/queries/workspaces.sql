-- name: names
SELECT workspace FROM workspace ORDER BY workspace COLLATE "C"

-- name: make
INSERT INTO workspace (workspace, language, created_by) VALUES (:workspace, :language, :principal)
ON CONFLICT DO NOTHING

-- name: grant_maker
INSERT INTO workspace_grant (workspace, principal, role, granted_by)
VALUES (:workspace, :principal, 'administrator', :principal)

-- name: holdings
-- What the index is known to hold is counted over all embedding identities.
SELECT (
        SELECT coalesce(jsonb_object_agg(family, cards), '{}')
        FROM (SELECT family, count(*) AS cards FROM card WHERE workspace = :workspace GROUP BY family) AS counted
    ) AS cards,
    (SELECT count(*) FROM session_reading WHERE workspace = :workspace) AS sessions,
    (SELECT count(*) FROM card_source WHERE workspace = :workspace AND card_id IS NOT NULL) AS sources,
    (SELECT count(*) FROM projection WHERE workspace = :workspace AND certified IS NOT NULL) AS points,
    (SELECT count(*) FROM workspace_grant WHERE workspace = :workspace) AS grants,
    (SELECT count(*) FROM admin_edit WHERE workspace = :workspace AND state = 'waiting') AS waiting_edits

-- name: remove
SELECT remove_workspace() AS removed
