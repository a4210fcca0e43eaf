-- name: find
SELECT e.role, e.text_hash, e.vector, e.truncated
FROM unnest(CAST(:roles AS text[]), CAST(:hashes AS text[])) AS wanted (role, text_hash)
JOIN embedding e ON e.workspace = :workspace AND e.identity = :identity
    AND e.role = wanted.role AND e.text_hash = wanted.text_hash

-- name: keep
INSERT INTO embedding (workspace, identity, role, text_hash, vector, truncated)
SELECT :workspace, :identity, role, text_hash, vector, truncated
FROM unnest(CAST(:roles AS text[]), CAST(:hashes AS text[]), CAST(:vectors AS bytea[]), CAST(:truncated AS boolean[]))
    AS made (role, text_hash, vector, truncated)
ON CONFLICT DO NOTHING
