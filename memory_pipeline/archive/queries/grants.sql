-- name: of
SELECT principal, role, granted_by, granted_at FROM workspace_grant WHERE workspace = :workspace
ORDER BY principal COLLATE "C"

-- name: role
SELECT role FROM workspace_grant WHERE workspace = :workspace AND principal = :principal

-- name: held_by
SELECT workspace, role FROM workspace_grant WHERE principal = :principal ORDER BY workspace COLLATE "C"

-- name: other_administrators
SELECT count(*) AS others FROM workspace_grant
WHERE workspace = :workspace AND role = :administrator AND principal <> :principal

-- name: give
-- Who gave it and when stay as they are where nothing changes.
INSERT INTO workspace_grant (workspace, principal, role, granted_by) VALUES (:workspace, :principal, :role, :by)
ON CONFLICT (workspace, principal) DO UPDATE
SET role = excluded.role, granted_at = now(), granted_by = excluded.granted_by
WHERE workspace_grant.role <> excluded.role

-- name: take
DELETE FROM workspace_grant WHERE workspace = :workspace AND principal = :principal
