-- name: names
SELECT workspace FROM workspace ORDER BY workspace COLLATE "C"

-- name: make
INSERT INTO workspace (workspace, language, created_by) VALUES (:workspace, :language, :principal)
ON CONFLICT DO NOTHING

-- name: grant_maker
INSERT INTO workspace_grant (workspace, principal, role, granted_by)
VALUES (:workspace, :principal, 'administrator', :principal)
