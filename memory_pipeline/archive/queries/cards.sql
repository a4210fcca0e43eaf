-- name: issue_numbers
INSERT INTO card_number (workspace, prefix, last) VALUES (:workspace, :prefix, :count)
ON CONFLICT (workspace, prefix) DO UPDATE SET last = card_number.last + excluded.last
RETURNING last

-- name: reserve_numbers
INSERT INTO card_number (workspace, prefix, last) VALUES (:workspace, :prefix, :last)
ON CONFLICT (workspace, prefix) DO UPDATE SET last = greatest(card_number.last, excluded.last)

-- name: insert
INSERT INTO card (
    workspace, card_id, family, origin, edited, subject, detail, rationale, question, sql, dialect, context, database,
    schema, concepts, text_key, fingerprint, question_words, updated_by)
VALUES (
    :workspace, :card_id, :family, :origin, :edited, :subject, :detail, :rationale, :question, :sql, :dialect, :context,
    :database, :schema, :concepts, :text_key, :fingerprint, :question_words, :principal)

-- name: update
-- The fingerprint of a solved question follows with what it names (name_literals): one in between would make its point
-- pending, though in the end it may not have changed.
UPDATE card
SET version = version + 1, subject = :subject, detail = :detail, rationale = :rationale, question = :question,
    sql = :sql, dialect = :dialect, context = :context, database = :database, schema = :schema, concepts = :concepts,
    text_key = :text_key, question_words = :question_words, updated_at = now(), updated_by = :principal,
    fingerprint = CASE family WHEN 'solved_question' THEN fingerprint ELSE :fingerprint END
WHERE workspace = :workspace AND card_id = :card_id AND family = :family

-- name: delete
DELETE FROM card WHERE workspace = :workspace AND card_id = ANY(:card_ids)

-- name: release_questions
-- A consumed source keeps its decision consumed, but stands behind no card and so behind no question.
UPDATE card_source SET question_id = NULL
WHERE workspace = :workspace AND card_id IS NULL AND question_id IS NOT NULL

-- name: forget_unused_questions
DELETE FROM question q
WHERE q.workspace = :workspace
    AND NOT EXISTS (SELECT FROM card_source s WHERE s.workspace = q.workspace AND s.question_id = q.question_id)

-- name: delete_dependencies
DELETE FROM card_dependency WHERE workspace = :workspace AND card_id = ANY(:card_ids)

-- name: insert_dependency
INSERT INTO card_dependency (workspace, card_id, database, schema, "table", "column")
VALUES (:workspace, :card_id, :database, :schema, :table, :column)

-- name: name_literals
UPDATE card SET named_literals = :named_literals, fingerprint = :fingerprint
WHERE workspace = :workspace AND card_id = :card_id

-- name: unread
-- Solved questions whose words and literals were never read, since they were written before anybody did.
SELECT card_id FROM card
WHERE workspace = :workspace AND family = 'solved_question' AND question_words IS NULL
LIMIT :limit

-- name: keep_words
UPDATE card SET question_words = :question_words WHERE workspace = :workspace AND card_id = :card_id

-- name: raise_flag
UPDATE card SET flags = flags || CAST(:flag AS text)
WHERE workspace = :workspace AND card_id = ANY(:card_ids) AND NOT CAST(:flag AS text) = ANY(flags)

-- name: lower_flag
UPDATE card SET flags = array_remove(flags, CAST(:flag AS text))
WHERE workspace = :workspace AND card_id = ANY(:card_ids) AND CAST(:flag AS text) = ANY(flags)

-- name: contents
SELECT c.card_id, c.version, c.family, c.subject, c.detail, c.rationale, c.question, c.sql, c.dialect, c.context,
    c.database, c.schema, c.concepts, c.named_literals, c.origin, c.edited, c.flags, c.fingerprint, c.updated_at,
    c.updated_by, ARRAY(
    SELECT ARRAY[d.database, d.schema, d."table", d."column"]
    FROM card_dependency d
    WHERE d.workspace = c.workspace AND d.card_id = c.card_id
) AS dependencies
FROM card c
WHERE c.workspace = :workspace AND c.card_id = ANY(:card_ids)
