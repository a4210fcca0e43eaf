-- name: decisions
-- What the archive has read of the decisions that a registry names.
SELECT w.session_id, w.seq, d.outcome, d.promoted_by, n.database, n.schema
FROM unnest(CAST(:sessions AS text[]), CAST(:seqs AS integer[])) AS w (session_id, seq)
JOIN decision d ON d.workspace = :workspace AND d.session_id = w.session_id AND d.seq = w.seq
JOIN session n ON n.workspace = d.workspace AND n.session_id = d.session_id

-- name: sources
SELECT s.session_id, s.seq
FROM unnest(CAST(:sessions AS text[]), CAST(:seqs AS integer[])) AS w (session_id, seq)
JOIN card_source s ON s.workspace = :workspace AND s.session_id = w.session_id AND s.seq = w.seq

-- name: last_number
SELECT coalesce((SELECT last FROM card_number WHERE workspace = :workspace AND prefix = 'mem'), 0) AS last
