-- name: header
SELECT language, (
        SELECT coalesce(jsonb_object_agg(prefix, last), '{}') FROM card_number n WHERE n.workspace = w.workspace
    ) AS numbers, jsonb_build_object(
        'card', (SELECT count(*) FROM card WHERE workspace = :workspace),
        'question', (SELECT count(*) FROM question WHERE workspace = :workspace),
        'source', (SELECT count(*) FROM card_source WHERE workspace = :workspace),
        'link', (SELECT count(*) FROM card_link WHERE workspace = :workspace)
    ) AS records
FROM workspace w
WHERE workspace = :workspace

-- name: cards
SELECT card_id, family, version, origin, edited, flags, subject, detail, rationale, question, sql, dialect, context,
    database, schema, concepts, ARRAY(
        SELECT ARRAY[d.database, d.schema, d."table", d."column"]
        FROM card_dependency d
        WHERE d.workspace = c.workspace AND d.card_id = c.card_id
    ) AS dependencies, created_at, updated_at, updated_by
FROM card c
WHERE workspace = :workspace
ORDER BY card_id COLLATE "C"

-- name: questions
SELECT question_id, text FROM question WHERE workspace = :workspace ORDER BY question_id COLLATE "C"

-- name: sources
SELECT session_id, seq, decision_type, decided_by, text_key, card_id, question_id
FROM card_source
WHERE workspace = :workspace
ORDER BY session_id COLLATE "C", seq

-- name: links
SELECT source_id, target_id, meaning
FROM card_link
WHERE workspace = :workspace
ORDER BY source_id COLLATE "C", target_id COLLATE "C"

-- name: filled
-- Whether the workspace has, or ever had, a card.
SELECT EXISTS (SELECT FROM card_number WHERE workspace = :workspace)
    OR EXISTS (SELECT FROM card WHERE workspace = :workspace)
    OR EXISTS (SELECT FROM card_source WHERE workspace = :workspace) AS filled

-- name: insert_card
INSERT INTO card (
    workspace, card_id, family, version, origin, edited, flags, subject, detail, rationale, question, sql, dialect,
    context, database, schema, concepts, text_key, fingerprint, question_words, created_at, updated_at, updated_by)
VALUES (
    :workspace, :card_id, :family, :version, :origin, :edited, :flags, :subject, :detail, :rationale, :question, :sql,
    :dialect, :context, :database, :schema, :concepts, :text_key, :fingerprint, :question_words, :created_at, :updated_at,
    :updated_by)

-- name: insert_question
INSERT INTO question (workspace, question_id, text, text_key, fingerprint)
VALUES (:workspace, :question_id, :text, :text_key, :fingerprint)
ON CONFLICT DO NOTHING

-- name: insert_source
INSERT INTO card_source (workspace, session_id, seq, decision_type, decided_by, text_key, card_id, question_id)
VALUES (:workspace, :session_id, :seq, :decision_type, :decided_by, :text_key, :card_id, :question_id)

-- name: insert_link
INSERT INTO card_link (workspace, source_id, target_id, meaning) VALUES (:workspace, :source_id, :target_id, :meaning)
