-- name: unreadable_sessions
SELECT DISTINCT session_id FROM ledger_fault WHERE workspace = :workspace AND kind = :kind

-- name: waiting_sessions
SELECT session_id FROM session_reading WHERE workspace = :workspace AND waiting ORDER BY session_id COLLATE "C"

-- name: waiting_edits
SELECT count(*) AS edits FROM admin_edit WHERE workspace = :workspace AND state = 'waiting'

-- name: candidates
SELECT session_id, seq, subject, count(*) OVER () AS total
FROM decision
WHERE workspace = :workspace AND outcome = 'candidate'
ORDER BY ts, session_id COLLATE "C", seq
LIMIT :limit

-- name: sessions_to_review
SELECT d.session_id, n.effective_question AS question, n.status, count(*) AS candidates, min(d.ts) AS since
FROM decision d
JOIN session n USING (workspace, session_id)
WHERE d.workspace = :workspace AND d.outcome = 'candidate'
GROUP BY d.session_id, n.effective_question, n.status
ORDER BY since, d.session_id COLLATE "C"

-- name: decision_counts
SELECT type, count(*) AS decisions, count(*) FILTER (WHERE effective) AS effective,
    count(*) FILTER (WHERE outcome = 'promoted') AS promoted, count(*) FILTER (WHERE outcome = 'declined') AS declined,
    count(*) FILTER (WHERE outcome = 'candidate') AS candidates, count(*) FILTER (WHERE outcome = 'refused') AS refused
FROM decision
WHERE workspace = :workspace
GROUP BY type
ORDER BY type
