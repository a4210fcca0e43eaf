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
SELECT :workspace, r.card_id, r.family, r.origin, r.edited, r.subject, r.detail, r.rationale, r.question, r.sql, r.dialect,
    r.context, r.database, r.schema, r.concepts, r.text_key, r.fingerprint, r.question_words, r.updated_by
FROM json_populate_recordset(CAST(NULL AS card), CAST(:rows AS json)) AS r

-- name: update
-- The fingerprint of a solved question follows with what it names (name_literals): one in between would make its point
-- pending, though in the end it may not have changed.
UPDATE card c
SET version = c.version + 1, subject = r.subject, detail = r.detail, rationale = r.rationale, question = r.question,
    sql = r.sql, dialect = r.dialect, context = r.context, database = r.database, schema = r.schema,
    concepts = r.concepts, text_key = r.text_key, question_words = r.question_words, updated_at = now(),
    updated_by = r.updated_by,
    fingerprint = CASE c.family WHEN 'solved_question' THEN c.fingerprint ELSE r.fingerprint END
FROM json_populate_recordset(CAST(NULL AS card), CAST(:rows AS json)) AS r
WHERE c.workspace = :workspace AND c.card_id = r.card_id AND c.family = r.family

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
SELECT :workspace, r.card_id, r.database, r.schema, r."table", r."column"
FROM json_populate_recordset(CAST(NULL AS card_dependency), CAST(:rows AS json)) AS r

-- name: name_literals
UPDATE card c SET named_literals = r.named_literals, fingerprint = r.fingerprint
FROM json_populate_recordset(CAST(NULL AS card), CAST(:rows AS json)) AS r
WHERE c.workspace = :workspace AND c.card_id = r.card_id

-- name: unread
-- Solved questions whose words and literals were never read, since they were written before anybody did.
SELECT card_id FROM card
WHERE workspace = :workspace AND family = 'solved_question' AND question_words IS NULL
LIMIT :limit

-- name: keep_words
UPDATE card c SET question_words = r.question_words
FROM json_populate_recordset(CAST(NULL AS card), CAST(:rows AS json)) AS r
WHERE c.workspace = :workspace AND c.card_id = r.card_id

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
