-- name: latency
-- Sorted at each call: of 50,000 projections that takes some 40 ms, and an index of certified_at would have to be written
-- with every certification. Cast, since an extracted epoch is a numeric, which has no percentiles.
SELECT count(*) AS points,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS p50,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds) AS p95
FROM (
    SELECT CAST(extract(epoch FROM certified_at - wanted_at) AS double precision) AS seconds
    FROM projection
    WHERE workspace = :workspace AND identity = :identity AND collection = ANY(:collections)
        AND NOT pending AND certified_at IS NOT NULL
    ORDER BY certified_at DESC
    LIMIT :limit) AS latest
