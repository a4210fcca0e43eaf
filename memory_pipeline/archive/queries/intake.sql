-- What an intake has to do, found :limit at a time, and each row with the total that there is. What was done is not
-- found again, but for `edited_cards`, which are compared each time. What is found of whole tables is found without nested
-- loops (`Tx.comparing`), and the rows of a batch are then looked up by key in the only way that leaves: LATERAL … OFFSET 0.

-- name: withdraw_clarifications
-- Sources whose clarification is no longer promoted. A consumed source (without a card) stays, and stays consumed.
WITH withdrawn AS (
    SELECT s.workspace, s.session_id, s.seq, count(*) OVER () AS total
    FROM card_source s
    JOIN decision d USING (workspace, session_id, seq)
    WHERE s.workspace = :workspace AND s.decision_type = 'concept_clarified' AND s.card_id IS NOT NULL
        AND d.outcome IS DISTINCT FROM 'promoted'
    ORDER BY s.card_id, s.session_id, s.seq
    LIMIT :limit
)
DELETE FROM card_source s
USING withdrawn w
WHERE s.workspace = w.workspace AND s.session_id = w.session_id AND s.seq = w.seq
RETURNING s.card_id, w.total

-- name: follow_promotions
-- Every promotion that a source has had is consumed with it, should its card be deleted.
UPDATE card_source s
SET decided_by = d.promoted_by
FROM decision d
WHERE s.workspace = :workspace AND s.decision_type = 'concept_clarified' AND s.card_id IS NOT NULL
    AND d.workspace = s.workspace AND d.session_id = s.session_id AND d.seq = s.seq
    AND d.outcome = 'promoted' AND d.promoted_by <> s.decided_by

-- name: new_clarifications
-- Promoted clarifications that are no source yet, or were consumed by an administrator's deletion before a later promotion.
WITH new AS (
    SELECT d.workspace, d.session_id, d.seq, count(*) OVER () AS total
    FROM decision d
    LEFT JOIN card_source s USING (workspace, session_id, seq)
    WHERE d.workspace = :workspace AND d.outcome = 'promoted'
        AND (s.seq IS NULL OR (s.card_id IS NULL AND d.promoted_by > s.decided_by))
    ORDER BY d.ts, d.session_id COLLATE "C", d.seq
    LIMIT :limit
)
SELECT new.total, d.session_id, d.seq, d.subject, d.detail, d.rationale, d.concepts, d.tables, d.text_key,
    d.promoted_by, n.database, n.schema, n.question_id, n.effective_question AS question
FROM new
CROSS JOIN LATERAL (
    SELECT * FROM decision d
    WHERE d.workspace = new.workspace AND d.session_id = new.session_id AND d.seq = new.seq OFFSET 0) AS d
CROSS JOIN LATERAL (
    SELECT * FROM session n WHERE n.workspace = new.workspace AND n.session_id = new.session_id OFFSET 0) AS n
ORDER BY d.ts, d.session_id COLLATE "C", d.seq

-- name: cards_of_equal_text
-- The card that has a source of equal text comes before one whose text is an administrator's own. A source that was taken
-- from its card stands for the card's own text. Looked up one by one: `text_key = ANY(…)` would read everything through.
SELECT asked.text_key, joined.card_id
FROM unnest(CAST(:text_keys AS text[])) AS asked (text_key)
CROSS JOIN LATERAL (
    SELECT card_id
    FROM (
        SELECT s.card_id,
            CASE WHEN d.rationale ~* concat('(?<![\w-])', s.card_id, '(?!-?\w)') THEN 2 ELSE 1 END AS rank
        FROM card_source s
        JOIN card c USING (workspace, card_id)
        LEFT JOIN decision d USING (workspace, session_id, seq)
        WHERE s.workspace = :workspace AND s.text_key = asked.text_key AND s.decision_type = 'concept_clarified'
            AND c.family = 'concept'
        UNION ALL
        SELECT c.card_id, 2
        FROM card c
        WHERE c.workspace = :workspace AND c.text_key = asked.text_key AND c.edited AND c.family = 'concept'
    ) AS candidates
    ORDER BY rank, card_id COLLATE "C"
    LIMIT 1
) AS joined

-- name: cited_cards
-- The cards that clarifications were taken from, as their rationales say, and whose words they have: of rules and
-- pitfalls, which no clarification joins otherwise, also words that only a source has; of concepts those that were edited,
-- as all others are found by their sources.
SELECT asked.number, min(c.card_id) AS card_id
FROM unnest(CAST(:numbers AS integer[]), CAST(:card_ids AS text[]), CAST(:text_keys AS text[]))
    AS asked (number, card_id, text_key)
JOIN card c ON c.workspace = :workspace AND c.card_id = asked.card_id AND c.family <> 'solved_question'
WHERE (c.text_key = asked.text_key AND (c.edited OR c.family <> 'concept'))
    OR (c.family <> 'concept' AND EXISTS (
        SELECT FROM card_source s
        WHERE s.workspace = c.workspace AND s.card_id = c.card_id AND s.text_key = asked.text_key))
GROUP BY asked.number

-- name: save_source
INSERT INTO card_source (workspace, session_id, seq, decision_type, decided_by, text_key, card_id, question_id)
SELECT :workspace, r.session_id, r.seq, r.decision_type, r.decided_by, r.text_key, r.card_id, r.question_id
FROM json_populate_recordset(CAST(NULL AS card_source), CAST(:rows AS json)) AS r
ON CONFLICT (workspace, session_id, seq) DO UPDATE
SET decided_by = excluded.decided_by, card_id = excluded.card_id, question_id = excluded.question_id

-- name: shown_clarifications
-- What each card's smallest source says. One that was taken from an edited card, in its words, says nothing else than it.
SELECT DISTINCT ON (s.card_id) s.card_id, c.family, c.edited, taken.taken, d.subject, d.detail, d.rationale, d.concepts,
    d.tables, n.database, n.schema
FROM card_source s
JOIN card c USING (workspace, card_id)
JOIN decision d USING (workspace, session_id, seq)
JOIN session n USING (workspace, session_id)
CROSS JOIN LATERAL (
    SELECT c.edited AND s.text_key = c.text_key
        AND d.rationale ~* concat('(?<![\w-])', c.card_id, '(?!-?\w)') AS taken
) AS taken
WHERE s.workspace = :workspace AND s.card_id = ANY(:card_ids)
ORDER BY s.card_id, taken.taken, d.ts, d.session_id COLLATE "C", d.seq

-- name: moved_cards
-- Cards whose smallest source is from a session whose manifest now names another database or schema than the card. Of
-- all cards, only those are looked at closely that have any source from such a session.
SELECT c.card_id, count(*) OVER () AS total
FROM (
    SELECT c.workspace, c.card_id
    FROM card_source s
    JOIN session n USING (workspace, session_id)
    JOIN card c USING (workspace, card_id)
    WHERE s.workspace = :workspace AND s.decision_type = 'concept_clarified' AND NOT c.edited
        AND (c.database <> n.database OR c.schema <> n.schema)
    GROUP BY c.workspace, c.card_id
) AS differing
JOIN card c USING (workspace, card_id)
CROSS JOIN LATERAL (
    SELECT n.database, n.schema
    FROM card_source s
    JOIN decision d USING (workspace, session_id, seq)
    JOIN session n USING (workspace, session_id)
    WHERE s.workspace = c.workspace AND s.card_id = c.card_id AND s.decision_type = 'concept_clarified'
    ORDER BY d.ts, d.session_id COLLATE "C", d.seq
    LIMIT 1
) AS smallest
WHERE c.database <> smallest.database OR c.schema <> smallest.schema
ORDER BY c.card_id
LIMIT :limit

-- name: edited_cards
-- All cards whose text is an administrator's and that reviewers stand behind too: whether the two differ is not stored.
SELECT c.card_id, count(*) OVER () AS total
FROM card c
WHERE c.workspace = :workspace AND c.edited AND EXISTS (
    SELECT FROM card_source s
    WHERE s.workspace = c.workspace AND s.card_id = c.card_id AND s.decision_type = 'concept_clarified')

-- name: without_sources
SELECT c.card_id, c.edited
FROM card c
WHERE c.workspace = :workspace AND c.card_id = ANY(:card_ids)
    AND NOT EXISTS (SELECT FROM card_source s WHERE s.workspace = c.workspace AND s.card_id = c.card_id)

-- name: save_question
INSERT INTO question (workspace, question_id, text, text_key, fingerprint)
SELECT :workspace, r.question_id, r.text, r.text_key, r.fingerprint
FROM json_populate_recordset(CAST(NULL AS question), CAST(:rows AS json)) AS r
ON CONFLICT DO NOTHING

-- name: moved_questions
-- Grouped, since EXISTS would have PostgreSQL compare each session with each source.
SELECT n.session_id, n.question_id, n.effective_question AS question, count(*) OVER () AS total
FROM card_source s
JOIN session n USING (workspace, session_id)
WHERE s.workspace = :workspace AND s.decision_type = 'concept_clarified' AND s.card_id IS NOT NULL
    AND s.question_id IS DISTINCT FROM n.question_id
GROUP BY n.session_id, n.question_id, n.effective_question
ORDER BY n.session_id
LIMIT :limit

-- name: move_question
UPDATE card_source s SET question_id = r.question_id
FROM json_populate_recordset(CAST(NULL AS card_source), CAST(:rows AS json)) AS r
WHERE s.workspace = :workspace AND s.session_id = r.session_id AND s.decision_type = 'concept_clarified'
    AND s.card_id IS NOT NULL

-- name: unsolved_sessions
-- Finalized sessions with approved SQL that have no solved question, and whose approval no deletion has consumed.
WITH unsolved AS (
    SELECT n.workspace, n.session_id, d.ts, count(*) OVER () AS total
    FROM session n
    CROSS JOIN LATERAL (
        SELECT d.ts FROM decision d
        WHERE d.workspace = n.workspace AND d.session_id = n.session_id AND d.seq = n.approved_seq OFFSET 0) AS d
    WHERE n.workspace = :workspace AND n.status = 'finalized' AND n.sql IS NOT NULL
        AND NOT EXISTS (
            SELECT FROM card_source s
            WHERE s.workspace = n.workspace AND s.session_id = n.session_id AND s.decision_type = 'sql_approved'
                AND (s.card_id IS NOT NULL OR s.seq >= n.approved_seq))
    ORDER BY d.ts, n.session_id COLLATE "C"
    LIMIT :limit
)
SELECT u.total, n.session_id, n.approved_seq, n.effective_question AS question, n.sql, n.context, n.database, n.schema,
    n.dialect
FROM unsolved u
CROSS JOIN LATERAL (
    SELECT * FROM session n WHERE n.workspace = u.workspace AND n.session_id = u.session_id OFFSET 0) AS n
ORDER BY u.ts, n.session_id COLLATE "C"

-- name: move_approvals
-- The source of a solved question is always the last effective approval.
UPDATE card_source s
SET seq = n.approved_seq, decided_by = n.approved_seq
FROM session n
WHERE s.workspace = :workspace AND s.decision_type = 'sql_approved' AND s.card_id IS NOT NULL
    AND n.workspace = s.workspace AND n.session_id = s.session_id AND n.approved_seq <> s.seq

-- name: changed_solved
-- Solved questions whose session says something else than the card, unless an edited one is flagged for it already.
WITH changed AS (
    SELECT c.workspace, c.card_id, n.session_id, count(*) OVER () AS total
    FROM card_source s
    JOIN session n USING (workspace, session_id)
    JOIN card c USING (workspace, card_id)
    WHERE s.workspace = :workspace AND s.decision_type = 'sql_approved' AND n.status = 'finalized' AND n.sql IS NOT NULL
        AND (c.question, c.sql, c.dialect, c.context, c.database, c.schema)
            IS DISTINCT FROM (n.effective_question, n.sql, n.dialect, n.context, n.database, n.schema)
        AND NOT (c.edited AND 'ledger_differs' = ANY(c.flags))
    ORDER BY c.card_id
    LIMIT :limit
)
SELECT x.total, c.card_id, c.edited, n.effective_question AS question, n.sql, n.context, n.database, n.schema, n.dialect
FROM changed x
CROSS JOIN LATERAL (SELECT * FROM card c WHERE c.workspace = x.workspace AND c.card_id = x.card_id OFFSET 0) AS c
CROSS JOIN LATERAL (
    SELECT * FROM session n WHERE n.workspace = x.workspace AND n.session_id = x.session_id OFFSET 0) AS n

-- name: settled_solved
-- Edited solved questions that were flagged, and whose session has come to say the same; of a merged one all sessions.
SELECT c.card_id, count(*) OVER () AS total
FROM card_source s
JOIN session n USING (workspace, session_id)
JOIN card c USING (workspace, card_id)
WHERE s.workspace = :workspace AND s.decision_type = 'sql_approved' AND c.edited AND 'ledger_differs' = ANY(c.flags)
GROUP BY c.card_id
HAVING bool_and((c.question, c.sql, c.dialect, c.context, c.database, c.schema)
    IS NOT DISTINCT FROM (n.effective_question, n.sql, n.dialect, n.context, n.database, n.schema))
ORDER BY c.card_id
LIMIT :limit

-- name: withdraw_approvals
-- Only a ledger withdraws: no approval is effective any more, but for those that a deletion has consumed.
WITH withdrawn AS (
    SELECT s.workspace, s.session_id, s.seq, count(*) OVER () AS total
    FROM card_source s
    JOIN session n USING (workspace, session_id)
    WHERE s.workspace = :workspace AND s.decision_type = 'sql_approved' AND s.card_id IS NOT NULL
        AND (n.approved_seq IS NULL OR EXISTS (
            SELECT FROM card_source consumed
            WHERE consumed.workspace = s.workspace AND consumed.session_id = s.session_id
                AND consumed.decision_type = 'sql_approved' AND consumed.card_id IS NULL
                AND consumed.seq >= n.approved_seq))
    ORDER BY s.session_id, s.seq
    LIMIT :limit
)
DELETE FROM card_source s
USING withdrawn w
WHERE s.workspace = w.workspace AND s.session_id = w.session_id AND s.seq = w.seq
RETURNING s.card_id, w.total
