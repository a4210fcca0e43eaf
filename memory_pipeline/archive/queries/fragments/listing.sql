-- name: page
-- Filters, counts and sorts all cards before it pages, in one statement and so from one state of the archive. What stands
-- in braces comes from the other fragments of this file. One row without a card still tells the total. What belongs to a
-- card is looked up by its key, in subqueries, which the planner cannot turn into a join over everything when its
-- statistics are of an archive that was smaller by far.
WITH found AS MATERIALIZED (
    SELECT c.card_id, {sort_key} AS sort_key
    FROM card c
    WHERE c.workspace = :workspace
        {conditions}
), page AS (
    SELECT f.card_id, f.sort_key
    FROM found f
    ORDER BY {order}
    LIMIT :limit OFFSET :offset
)
SELECT counted.total, c.card_id, c.family, c.version, left(c.subject || c.question, 500) AS title, c.origin, c.edited,
    c.flags, c.created_at, c.updated_at, c.updated_by, s.sources, s.sessions,
    CASE WHEN NOT t.pending THEN 'recallable' ELSE 'pending' END AS state, t.reason, coalesce(t.attempts, 0) AS attempts,
    t.next_try
FROM (SELECT count(*) AS total FROM found) counted
LEFT JOIN page f ON true
LEFT JOIN card c ON c.workspace = :workspace AND c.card_id = f.card_id
CROSS JOIN LATERAL (
    SELECT count(*) AS sources, count(DISTINCT n.session_id) AS sessions
    FROM card_source n
    WHERE n.workspace = c.workspace AND n.card_id = c.card_id
) s
LEFT JOIN LATERAL (
    SELECT p.pending, p.reason, p.attempts, p.next_try
    FROM projection p
    WHERE p.workspace = c.workspace AND p.identity = :identity AND p.collection = collection_of(c.family)
        AND p.item_id = c.card_id
    OFFSET 0  -- keeps it a subquery
) t ON true
ORDER BY {order}

-- name: with_words
-- Every word, wherever it stands. A word is folded before its wildcards are escaped, since folding may bring them in.
c.search_text LIKE ALL (ARRAY(
    SELECT '%' || regexp_replace(folded(word), '([\\%_])', '\\\1', 'g') || '%'
    FROM unnest(CAST(:words AS text[])) AS word))

-- name: with_families
c.family = ANY(:families)

-- name: with_concept
folded(:concept) = ANY(c.concept_keys)

-- name: with_objects
-- All names that are asked for are one dependency's. IS TRUE keeps the planner from a join (see `page`).
(c.card_id IN (
    SELECT d.card_id
    FROM card_dependency d
    WHERE d.workspace = :workspace
        AND (CAST(:database AS text) = '' OR lower(normalize(d.database)) = lower(normalize(:database)))
        AND (CAST(:schema AS text) = '' OR lower(normalize(d.schema)) = lower(normalize(:schema)))
        AND (CAST(:table AS text) = '' OR lower(normalize(d."table")) = lower(normalize(:table)))
        AND (CAST(:column AS text) = '' OR lower(normalize(d."column")) = lower(normalize(:column)))
)) IS TRUE

-- name: with_origin
c.origin = :origin

-- name: with_updated_after
c.updated_at >= :updated_after

-- name: with_updated_before
c.updated_at < :updated_before

-- name: with_flag
:flag = ANY(c.flags)

-- name: with_state
-- Of what the index was never asked to hold under this identity, nothing is recallable.
CASE WHEN c.card_id IN (
    SELECT t.item_id
    FROM projection t
    WHERE t.workspace = :workspace AND t.identity = :identity AND NOT t.pending
        AND t.collection IN ('memory_cards', 'solved_questions')
) THEN 'recallable' ELSE 'pending' END = :state

-- name: by_card_id
CAST(NULL AS text)

-- name: by_family
c.family COLLATE "C"

-- name: by_title
-- The title as it is searched: it stands first in what is, before the first unit separator.
split_part(left(c.search_text, 200), E'\x1f', 1) COLLATE "C"

-- name: by_updated_at
c.updated_at

-- name: by_created_at
c.created_at

-- name: by_version
c.version

-- name: by_sources
(SELECT count(*) FROM card_source n WHERE n.workspace = c.workspace AND n.card_id = c.card_id)
