-- name: depended
SELECT database, schema, "table", "column", array_agg(card_id ORDER BY card_id COLLATE "C") AS card_ids
FROM card_dependency
WHERE workspace = :workspace
GROUP BY database, schema, "table", "column"
ORDER BY database COLLATE "C", schema COLLATE "C", "table" COLLATE "C", "column" COLLATE "C"
