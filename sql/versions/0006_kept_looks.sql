-- What the last audit of all collections of a workspace found.
CREATE TABLE last_audit (
    workspace  text PRIMARY KEY REFERENCES workspace ON DELETE CASCADE,
    at         timestamptz NOT NULL,                    -- when it ended
    checked    bigint NOT NULL,                         -- certified points that were looked for
    differing  jsonb NOT NULL,                          -- kind of difference → points; without those of which there are none
    repaired   boolean NOT NULL                         -- what it found was mended at once
);

ALTER TABLE last_audit ENABLE ROW LEVEL SECURITY;
CREATE POLICY workspace_only ON last_audit USING (workspace = current_setting('memory.workspace', true))
    WITH CHECK (workspace = current_setting('memory.workspace', true));
