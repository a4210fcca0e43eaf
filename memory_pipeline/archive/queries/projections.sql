-- name: pending
SELECT item_id
FROM projection
WHERE workspace = :workspace AND identity = :identity AND collection = :collection AND pending
    AND (next_try IS NULL OR next_try <= clock_timestamp())
    AND (CAST(:items AS text[]) IS NULL OR item_id = ANY(:items))
ORDER BY attempts, wanted_at, item_id
LIMIT :limit

-- name: made_pending
SELECT DISTINCT item_id FROM projection WHERE workspace = :workspace AND pending AND wanted_at >= coalesce(CAST(:since AS timestamptz), now())

-- name: questions
SELECT question_id, text, fingerprint FROM question WHERE workspace = :workspace AND question_id = ANY(:question_ids)

-- name: certify
-- Compare and set: what was overtaken while it was written stays pending.
UPDATE projection p
SET certified = p.wanted, certified_at = clock_timestamp(), pending = false,
    attempts = 0, next_try = NULL, reason = NULL, truncated = held.truncated
FROM unnest(CAST(:items AS text[]), CAST(:fingerprints AS text[]), CAST(:truncated AS boolean[]))
    AS held (item_id, fingerprint, truncated)
WHERE p.workspace = :workspace AND p.identity = :identity AND p.collection = :collection
    AND p.item_id = held.item_id AND p.wanted = held.fingerprint AND p.pending

-- name: certify_removed
DELETE FROM projection
WHERE workspace = :workspace AND identity = :identity AND collection = :collection
    AND item_id = ANY(:items) AND wanted IS NULL

-- name: defer
UPDATE projection
SET attempts = attempts + 1, reason = :reason,
    next_try = clock_timestamp() + least(interval '1 hour', interval '5 seconds' * power(2, least(attempts, 20)))
WHERE workspace = :workspace AND identity = :identity AND collection = :collection AND item_id = ANY(:items) AND pending

-- name: hasten
UPDATE projection SET next_try = NULL
WHERE workspace = :workspace AND identity = :identity AND collection = :collection AND pending AND next_try IS NOT NULL
    AND (CAST(:items AS text[]) IS NULL OR item_id = ANY(:items))

-- name: distrust
-- What was pending already has waited since then, and no longer waits for its next try.
UPDATE projection
SET pending = true, certified = NULL, wanted_at = CASE WHEN pending THEN wanted_at ELSE clock_timestamp() END,
    attempts = 0, next_try = NULL, reason = :reason
WHERE workspace = :workspace AND identity = :identity AND collection = :collection AND item_id = ANY(:items)

-- name: distrust_all
UPDATE projection
SET pending = true, certified = NULL, wanted_at = CASE WHEN pending THEN wanted_at ELSE clock_timestamp() END,
    attempts = 0, next_try = NULL, reason = :reason
WHERE workspace = :workspace

-- name: waiting
SELECT count(*) AS pending, min(wanted_at) AS oldest,
    coalesce(bool_or(next_try IS NULL OR next_try <= clock_timestamp()), false) AS due
FROM pending_points(:workspace, :identity)

-- name: wanted
SELECT collection, count(*) AS points
FROM projection
WHERE workspace = :workspace AND identity = :identity AND collection = ANY(:collections)
    AND wanted IS NOT NULL AND (certified IS NOT NULL OR NOT :certified)
GROUP BY collection

-- name: states
SELECT collection, count(*) FILTER (WHERE NOT pending) AS certified, count(*) FILTER (WHERE pending) AS pending,
    min(wanted_at) FILTER (WHERE pending) AS oldest_pending
FROM projection
WHERE workspace = :workspace AND identity = :identity
GROUP BY collection

-- name: reasons
SELECT reason, count(*) AS points, count(*) FILTER (WHERE attempts > 0) AS deferred, max(attempts) AS attempts,
    min(next_try) AS next_try
FROM projection
WHERE workspace = :workspace AND identity = :identity AND pending AND reason IS NOT NULL
GROUP BY reason
ORDER BY points DESC, reason
