-- name: card
SELECT c.card_id, c.version, c.family, c.subject, c.detail, c.rationale, c.question, c.sql, c.dialect, c.context,
    c.database, c.schema, c.concepts, c.origin, c.edited, c.flags, c.created_at, c.updated_at, c.updated_by,
    ARRAY(
        SELECT ARRAY[d.database, d.schema, d."table", d."column"]
        FROM card_dependency d
        WHERE d.workspace = c.workspace AND d.card_id = c.card_id
    ) AS dependencies,
    coalesce(t.pending, true) AS pending, t.certified_at, coalesce(t.wanted_at, c.updated_at) AS wanted_at, t.reason,
    coalesce(t.attempts, 0) AS attempts, t.next_try, coalesce(t.truncated, false) AS truncated
FROM card c
LEFT JOIN projection t ON t.workspace = c.workspace AND t.identity = :identity
    AND t.collection = collection_of(c.family) AND t.item_id = c.card_id
WHERE c.workspace = :workspace AND c.card_id = :card_id

-- name: sources
-- A solved question comes from the question of its session. What was brought in from elsewhere has no session here.
SELECT s.session_id, s.seq, s.decision_type, coalesce(q.text, n.effective_question, '') AS question, d.ts,
    coalesce(d.subject, '') AS subject, coalesce(d.detail, '') AS detail
FROM card_source s
LEFT JOIN question q USING (workspace, question_id)
LEFT JOIN session n USING (workspace, session_id)
LEFT JOIN decision d USING (workspace, session_id, seq)
WHERE s.workspace = :workspace AND s.card_id = :card_id
ORDER BY d.ts, s.session_id COLLATE "C", s.seq

-- name: links
SELECT l.other, left(c.subject || c.question, 500) AS title, l.meaning, l.outgoing
FROM (
    SELECT target_id AS other, meaning, true AS outgoing
    FROM card_link
    WHERE workspace = :workspace AND source_id = :card_id
    UNION ALL
    SELECT source_id, meaning, false
    FROM card_link
    WHERE workspace = :workspace AND target_id = :card_id
) l
JOIN card c ON c.workspace = :workspace AND c.card_id = l.other
ORDER BY l.outgoing DESC, split_part(l.other, '-', 1) COLLATE "C", length(l.other), l.other COLLATE "C"
