-- name: cards
SELECT family, count(*) AS cards FROM card WHERE workspace = :workspace GROUP BY family

-- name: numbers
SELECT
    (SELECT count(*) FROM card_source WHERE workspace = :workspace AND card_id IS NOT NULL) AS sources,
    d.candidates, d.declined, d.decisions, d.effective, d.promoted,
    (SELECT count(*) FROM session WHERE workspace = :workspace) AS sessions,
    (SELECT count(*) FROM ledger_fault WHERE workspace = :workspace) AS faults,
    p.certified, p.pending, p.lag_seconds,
    (SELECT count(*) FROM (
        SELECT FROM card_source
        WHERE workspace = :workspace AND card_id IS NOT NULL
        GROUP BY card_id HAVING count(*) > 1) confirmed) AS cards_with_several_sources
FROM (
    SELECT count(*) AS decisions, count(*) FILTER (WHERE effective) AS effective,
        count(*) FILTER (WHERE outcome = 'promoted') AS promoted,
        count(*) FILTER (WHERE outcome = 'candidate') AS candidates,
        count(*) FILTER (WHERE outcome = 'declined') AS declined
    FROM decision WHERE workspace = :workspace) d
CROSS JOIN (
    SELECT count(*) FILTER (WHERE NOT pending) AS certified, count(*) FILTER (WHERE pending) AS pending,
        coalesce(extract(epoch FROM clock_timestamp() - min(wanted_at) FILTER (WHERE pending)), 0) AS lag_seconds
    FROM projection WHERE workspace = :workspace AND identity = :identity) p

-- name: faults
SELECT session_id, line, kind, reason
FROM ledger_fault
WHERE workspace = :workspace
ORDER BY session_id COLLATE "C", line, ordinal
LIMIT :limit
