-- name: signatures
SELECT session_id, signature FROM session_reading WHERE workspace = :workspace

-- name: were_read
SELECT EXISTS (SELECT FROM session_reading WHERE workspace = :workspace) AS were_read

-- name: decisions
SELECT session_id, seq, ts, type, phase, subject, detail, rationale, concepts, tables
FROM decision
WHERE workspace = :workspace AND session_id = ANY(:session_ids)

-- name: save_reading
INSERT INTO session_reading (workspace, session_id, signature, waiting)
SELECT :workspace, r.session_id, r.signature, r.waiting
FROM json_populate_recordset(CAST(NULL AS session_reading), CAST(:rows AS json)) AS r
ON CONFLICT (workspace, session_id) DO UPDATE
SET signature = excluded.signature, waiting = excluded.waiting, read_at = now()

-- name: save_session
-- An SQL file that is gone or blank withdraws nothing: the last one that was read stays.
INSERT INTO session (
    workspace, session_id, status, question, database, schema, dialect, created_at, updated_at, updated_by, sql,
    effective_question, question_id, approved_seq, context, rejected_cards)
SELECT :workspace, r.session_id, r.status, r.question, r.database, r.schema, r.dialect, r.created_at, r.updated_at,
    r.updated_by, r.sql, r.effective_question, r.question_id, r.approved_seq, r.context, r.rejected_cards
FROM json_populate_recordset(CAST(NULL AS session), CAST(:rows AS json)) AS r
ON CONFLICT (workspace, session_id) DO UPDATE
SET status = excluded.status, question = excluded.question, database = excluded.database, schema = excluded.schema,
    dialect = excluded.dialect, created_at = excluded.created_at, updated_at = excluded.updated_at,
    updated_by = excluded.updated_by, sql = coalesce(excluded.sql, session.sql),
    effective_question = excluded.effective_question, question_id = excluded.question_id,
    approved_seq = excluded.approved_seq, context = excluded.context, rejected_cards = excluded.rejected_cards

-- name: save_decision
-- What a line says never changes; what later lines make of it does.
INSERT INTO decision (
    workspace, session_id, seq, ts, type, phase, subject, detail, rationale, concepts, tables, text_key,
    effective, outcome, promoted_by)
SELECT :workspace, r.session_id, r.seq, r.ts, r.type, r.phase, r.subject, r.detail, r.rationale, r.concepts, r.tables,
    r.text_key, r.effective, r.outcome, r.promoted_by
FROM json_populate_recordset(CAST(NULL AS decision), CAST(:rows AS json)) AS r
ON CONFLICT (workspace, session_id, seq) DO UPDATE
SET effective = excluded.effective, outcome = excluded.outcome, promoted_by = excluded.promoted_by
WHERE (decision.effective, decision.outcome, decision.promoted_by)
    IS DISTINCT FROM (excluded.effective, excluded.outcome, excluded.promoted_by)

-- name: forget_faults
DELETE FROM ledger_fault WHERE workspace = :workspace AND session_id = ANY(:session_ids)

-- name: save_fault
INSERT INTO ledger_fault (workspace, session_id, line, kind, reason, ordinal)
SELECT :workspace, r.session_id, r.line, r.kind, r.reason, r.ordinal
FROM json_populate_recordset(CAST(NULL AS ledger_fault), CAST(:rows AS json)) AS r
