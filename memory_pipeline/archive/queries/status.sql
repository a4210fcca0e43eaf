-- name: cards
SELECT family, count(*) AS cards FROM card WHERE workspace = :workspace GROUP BY family

-- name: ledgers
SELECT count(*) AS decisions, count(*) FILTER (WHERE effective) AS effective,
    count(*) FILTER (WHERE outcome = 'promoted') AS promoted,
    count(*) FILTER (WHERE outcome = 'candidate') AS candidates,
    count(*) FILTER (WHERE outcome = 'declined') AS declined,
    (SELECT count(*) FROM session WHERE workspace = :workspace) AS sessions,
    (SELECT count(*) FROM ledger_fault WHERE workspace = :workspace) AS faults
FROM decision
WHERE workspace = :workspace

-- name: sources
SELECT coalesce(sum(sources), 0) AS sources, count(*) FILTER (WHERE sources > 1) AS cards_with_several_sources
FROM (
    SELECT count(*) AS sources
    FROM card_source
    WHERE workspace = :workspace AND card_id IS NOT NULL
    GROUP BY card_id) AS confirmed

-- name: points
WITH held AS (
    SELECT count(*) AS points, count(*) FILTER (WHERE truncated) AS truncated
    FROM projection
    WHERE workspace = :workspace AND identity = :identity AND NOT pending
)
SELECT count(*) AS pending,
    CAST(coalesce(extract(epoch FROM clock_timestamp() - min(wanted_at)), 0) AS double precision) AS lag_seconds,
    (SELECT points FROM held) AS certified, (SELECT truncated FROM held) AS truncated
FROM pending_points(:workspace, :identity)

-- name: fault_counts
SELECT kind, count(*) AS faults
FROM ledger_fault
WHERE workspace = :workspace
GROUP BY kind
ORDER BY faults DESC, kind

-- name: faults
SELECT session_id, line, kind, reason
FROM ledger_fault
WHERE workspace = :workspace
ORDER BY session_id COLLATE "C", line, ordinal
LIMIT :limit
