-- name: sample
-- Looks and writes in one statement, so that what is written was so when it says. Of two looks at once the later one
-- says what was left, whichever is written first.
WITH former AS (
    DELETE FROM backlog_sample WHERE workspace = :workspace AND minute < statement_timestamp() - interval '30 days'
), seen AS (
    SELECT count(*) AS pending, min(wanted_at) AS since
    FROM pending_points(:workspace, coalesce(
        (SELECT identity FROM embedding_identity WHERE workspace = :workspace AND live), :configured))
)
INSERT INTO backlog_sample AS kept (workspace, minute, pending, lag_seconds, seen_at, left_pending, left_since)
SELECT :workspace, date_trunc('minute', statement_timestamp()), pending,
    coalesce(greatest(0, extract(epoch FROM statement_timestamp() - since)), 0), statement_timestamp(), pending, since
FROM seen
ON CONFLICT (workspace, minute) DO UPDATE
SET pending = greatest(kept.pending, excluded.pending), lag_seconds = greatest(kept.lag_seconds, excluded.lag_seconds),
    seen_at = greatest(kept.seen_at, excluded.seen_at),
    left_pending = CASE WHEN excluded.seen_at >= kept.seen_at THEN excluded.left_pending ELSE kept.left_pending END,
    left_since = CASE WHEN excluded.seen_at >= kept.seen_at THEN excluded.left_since ELSE kept.left_since END

-- name: now
SELECT now() AS at FROM workspace WHERE workspace = :workspace

-- name: looks
-- The looks of a span of time, from the last one before it, whose backlog may still have been there when it began; then
-- the present.
SELECT minute, pending, lag_seconds, seen_at, left_pending, left_since
FROM (
    SELECT false AS present, minute, pending, lag_seconds, seen_at, left_pending, left_since
    FROM backlog_sample
    WHERE workspace = :workspace AND minute < :until AND minute >= coalesce(
        (SELECT max(minute) FROM backlog_sample WHERE workspace = :workspace AND minute < :since), '-infinity')
    UNION ALL
    SELECT true, now(), count(*),
        CAST(coalesce(greatest(0, extract(epoch FROM now() - min(wanted_at))), 0) AS double precision),
        now(), count(*), min(wanted_at)
    FROM pending_points(:workspace, coalesce(
        (SELECT identity FROM embedding_identity WHERE workspace = :workspace AND live), :configured))) AS look
ORDER BY present, minute
