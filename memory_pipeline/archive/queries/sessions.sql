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
VALUES (:workspace, :session_id, :signature, :waiting)
ON CONFLICT (workspace, session_id) DO UPDATE
SET signature = excluded.signature, waiting = excluded.waiting, read_at = now()

-- name: save_session
-- An SQL file that is gone or blank withdraws nothing: the last one that was read stays.
INSERT INTO session (
    workspace, session_id, status, question, database, schema, dialect, created_at, updated_at, updated_by, sql,
    effective_question, question_id, approved_seq, context, rejected_cards)
VALUES (
    :workspace, :session_id, :status, :question, :database, :schema, :dialect, :created_at, :updated_at, :updated_by,
    :sql, :effective_question, :question_id, :approved_seq, :context, :rejected_cards)
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
VALUES (
    :workspace, :session_id, :seq, :ts, :type, :phase, :subject, :detail, :rationale, :concepts, :tables, :text_key,
    :effective, :outcome, :promoted_by)
ON CONFLICT (workspace, session_id, seq) DO UPDATE
SET effective = excluded.effective, outcome = excluded.outcome, promoted_by = excluded.promoted_by
WHERE (decision.effective, decision.outcome, decision.promoted_by)
    IS DISTINCT FROM (excluded.effective, excluded.outcome, excluded.promoted_by)

-- name: forget_faults
DELETE FROM ledger_fault WHERE workspace = :workspace AND session_id = ANY(:session_ids)

-- name: save_fault
INSERT INTO ledger_fault (workspace, session_id, line, kind, reason, ordinal)
VALUES (:workspace, :session_id, :line, :kind, :reason, :ordinal)
