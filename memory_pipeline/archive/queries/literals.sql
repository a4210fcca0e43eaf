-- name: known
-- Those of some distinct phrases that the workspace's SQL compares a column with. Looked up one by one: for many
-- thousands, as an import has them, `literal = ANY(…)` would compare each with each.
SELECT phrase AS literal
FROM unnest(CAST(:phrases AS text[])) AS phrase
WHERE EXISTS (SELECT FROM card_literal l WHERE l.workspace = :workspace AND l.literal = phrase)

-- name: of_cards
SELECT DISTINCT literal FROM card_literal WHERE workspace = :workspace AND card_id = ANY(:card_ids)

-- name: forget
DELETE FROM card_literal WHERE workspace = :workspace AND card_id = ANY(:card_ids)

-- name: keep
INSERT INTO card_literal (workspace, literal, card_id) SELECT :workspace, r.literal, r.card_id
FROM json_populate_recordset(CAST(NULL AS card_literal), CAST(:rows AS json)) AS r

-- name: concerned
-- Solved questions by id, and those that have a word of some literals.
SELECT card_id, question, named_literals
FROM card
WHERE workspace = :workspace AND family = 'solved_question'
    AND (card_id = ANY(:card_ids) OR question_words && CAST(:words AS text[]))
