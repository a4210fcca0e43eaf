-- name: propagation
-- A missing collection is lost when the archive knows of a point in it that it still wants.
SELECT
    (SELECT count(*) FROM pending_points(:workspace, :identity)) AS pending,
    ARRAY(
        SELECT missing.collection
        FROM unnest(CAST(:missing AS text[])) AS missing (collection)
        WHERE EXISTS (
            SELECT FROM projection p
            WHERE p.workspace = :workspace AND p.identity = :identity AND p.collection = missing.collection
                AND p.certified IS NOT NULL AND p.wanted IS NOT NULL)
    ) AS lost

-- name: questions
-- Questions by id, and those asked with the same words; each with the cards that stand behind it now. LIMIT keeps each
-- lookup a lookup by key, here and below: of a workspace that was filled a moment ago the planner knows nothing yet, and
-- would rather read all of it.
WITH wanted AS (
    SELECT unnest(CAST(:question_ids AS text[])) AS question_id
    UNION
    SELECT question_id FROM question WHERE workspace = :workspace AND text_key = CAST(:text_key AS text)
)
SELECT q.question_id, q.fingerprint, q.text_key = :text_key AS verbatim, ARRAY(
    SELECT DISTINCT s.card_id
    FROM card_source s
    WHERE s.workspace = :workspace AND s.question_id = q.question_id AND s.card_id IS NOT NULL
) AS card_ids
FROM wanted
CROSS JOIN LATERAL (
    SELECT * FROM question WHERE workspace = :workspace AND question_id = wanted.question_id LIMIT 1
) AS q

-- name: candidates
-- What decides whether a card may be shown: cards by id, and solved questions asked with the same words.
WITH candidate AS (
    SELECT unnest(CAST(:card_ids AS text[])) AS card_id
    UNION
    SELECT card_id
    FROM card
    WHERE workspace = :workspace AND text_key = CAST(:text_key AS text) AND family = 'solved_question'
), cited AS MATERIALIZED (
    -- A clarification that was made from a card says so in its rationale ("from mem-0012"); an id is a word of its own.
    SELECT lower(found[1]) AS card_id
    FROM decision d, regexp_matches(d.rationale, '(?<![\w-])((mem|sq)-[0-9]+)(?!-?\w)', 'gi') AS found
    WHERE d.workspace = :workspace AND d.session_id = :session_id AND d.type = 'concept_clarified' AND d.effective
)
SELECT c.card_id, c.family, c.fingerprint, c.database, c.schema, c.subject, left(c.detail, :read_at_most) AS detail, (
        SELECT count(DISTINCT s.session_id)
        FROM card_source s
        WHERE s.workspace = :workspace AND s.card_id = c.card_id
    ) AS sessions,
    c.family = 'solved_question' AND c.text_key = :text_key AS verbatim,
    CASE WHEN :scoped THEN ARRAY(
        SELECT ARRAY[d.database, d.schema, d."table", d."column"]
        FROM card_dependency d
        WHERE d.workspace = :workspace AND d.card_id = c.card_id
    ) ELSE '{}' END AS dependencies,
    CASE
        WHEN CAST(:session_id AS text) IS NULL THEN NULL
        WHEN EXISTS (
            SELECT FROM card_source s
            WHERE s.workspace = :workspace AND s.card_id = c.card_id AND s.session_id = :session_id) THEN 'confirmed'
        WHEN EXISTS (
            SELECT FROM session n
            WHERE n.workspace = :workspace AND n.session_id = :session_id AND c.card_id = ANY(n.rejected_cards)) THEN 'rejected'
        WHEN c.card_id IN (SELECT card_id FROM cited) THEN 'cited'
    END AS decided
FROM candidate
CROSS JOIN LATERAL (
    SELECT card_id, family, fingerprint, subject, detail, database, schema, text_key
    FROM card
    WHERE workspace = :workspace AND card_id = candidate.card_id
    LIMIT 1
) AS c

-- name: shown
SELECT c.card_id, c.version, c.family, c.subject, c.detail, c.rationale, c.question, c.sql, c.dialect, c.context,
    c.database, c.schema, c.concepts, ARRAY(
    SELECT ARRAY[d.database, d.schema, d."table", d."column"]
    FROM card_dependency d
    WHERE d.workspace = :workspace AND d.card_id = c.card_id
) AS dependencies, (
    SELECT count(DISTINCT s.session_id)
    FROM card_source s
    WHERE s.workspace = :workspace AND s.card_id = c.card_id
) AS sessions
FROM unnest(CAST(:card_ids AS text[])) AS wanted (card_id)
CROSS JOIN LATERAL (
    SELECT * FROM card WHERE workspace = :workspace AND card_id = wanted.card_id LIMIT 1
) AS c

-- name: links
-- The links among the cards within some steps of the given ones, whichever way a link points. The number of steps ends
-- every cycle; UNION keeps a card once for each number of steps, however many ways lead to it.
WITH RECURSIVE reached (card_id, steps) AS (
    SELECT unnest(CAST(:card_ids AS text[])), 0
    UNION
    SELECT CASE l.source_id WHEN r.card_id THEN l.target_id ELSE l.source_id END, r.steps + 1
    FROM reached r
    JOIN card_link l ON l.workspace = :workspace AND r.card_id IN (l.source_id, l.target_id)
    WHERE r.steps < :steps
)
SELECT l.source_id, l.target_id, l.meaning
FROM card_link l
WHERE l.workspace = :workspace
    AND l.source_id IN (SELECT card_id FROM reached) AND l.target_id IN (SELECT card_id FROM reached)
ORDER BY l.source_id COLLATE "C", l.target_id COLLATE "C"

-- name: by_text
-- Cards that share a word with the question, in the workspace's language where PostgreSQL knows it. Its parser splits
-- flag_attivo by itself; CDSCode is read a second time in parts. A text is read so far only, since a vector of more than
-- 1 MB is an error and would fail every answer; and once only, which without MATERIALIZED would be twice.
WITH language AS (
    SELECT coalesce(
        (SELECT p.oid FROM pg_ts_config p
            WHERE p.cfgname = w.language AND p.cfgnamespace = 'pg_catalog'::regnamespace),
        'pg_catalog.simple'::regconfig)::regconfig AS config,
        '([a-z0-9])(?=[A-Z])|([A-Z])(?=[A-Z][a-z])' AS hump
    FROM workspace w
    WHERE w.workspace = :workspace
), asked AS (
    SELECT l.config, l.hump, (
        SELECT string_agg('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''', ' | ')::tsquery
        FROM unnest(to_tsvector(l.config,
            concat_ws(' ', CAST(:question AS text), regexp_replace(:question, l.hump, '\1\2 ', 'g'))))
    ) AS words
    FROM language l
), card_text AS (
    SELECT c.card_id, left(concat_ws(' ', c.subject, c.detail, c.question), 100000) AS text
    FROM card c
    WHERE c.workspace = :workspace AND c.family = ANY(:families)
), read AS MATERIALIZED (
    SELECT t.card_id, a.words, to_tsvector(a.config,
        concat_ws(' ', t.text, nullif(regexp_replace(t.text, a.hump, '\1\2 ', 'g'), t.text))) AS vector
    FROM card_text t
    CROSS JOIN asked a
)
SELECT card_id, ts_rank(vector, words) AS rank
FROM read
WHERE vector @@ words
