-- What the last audit of all collections of a workspace found.
CREATE TABLE last_audit (
    workspace  text PRIMARY KEY REFERENCES workspace ON DELETE CASCADE,
    at         timestamptz NOT NULL,                    -- when it ended
    checked    bigint NOT NULL,                         -- certified points that were looked for
    differing  jsonb NOT NULL,                          -- kind of difference → points; without those of which there are none
    repaired   boolean NOT NULL                         -- what it found was mended at once
);

-- What projections saw pending when they began and ended, of the points that recall uses. Of one minute the greatest is
-- kept, and beside it what the last look in it left: a projection that took seconds left nothing.
CREATE TABLE backlog_sample (
    workspace     text NOT NULL REFERENCES workspace ON DELETE CASCADE,
    minute        timestamptz NOT NULL,                 -- its beginning
    pending       bigint NOT NULL,                      -- the most points
    lag_seconds   double precision NOT NULL,            -- the greatest age of the oldest of them
    seen_at       timestamptz NOT NULL,                 -- when the last look was
    left_pending  bigint NOT NULL,                      -- what it saw
    left_since    timestamptz,                          -- since when the oldest of that is pending; NULL: nothing is
    PRIMARY KEY (workspace, minute)
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['last_audit', 'backlog_sample'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY workspace_only ON %I USING (workspace = current_setting(''memory.workspace'', true)) '
            'WITH CHECK (workspace = current_setting(''memory.workspace'', true))', name);
    END LOOP;
END $$;
