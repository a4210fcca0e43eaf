-- The archive. Every key and every foreign key begins with workspace, so nothing can point out of its workspace;
-- row-level security then shows the runtime role only the workspace that its transaction names.

CREATE TABLE workspace (
    workspace   text PRIMARY KEY CHECK (workspace ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    language    text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    created_by  text NOT NULL
);

CREATE TABLE workspace_grant (
    workspace   text NOT NULL REFERENCES workspace ON DELETE CASCADE,
    principal   text NOT NULL,
    role        text NOT NULL CHECK (role IN ('reader', 'reviewer', 'administrator')),
    granted_at  timestamptz NOT NULL DEFAULT now(),
    granted_by  text NOT NULL,
    PRIMARY KEY (workspace, principal)
);

-- What was last read from a session directory, whether or not it could be used.
CREATE TABLE session_reading (
    workspace   text NOT NULL REFERENCES workspace ON DELETE CASCADE,
    session_id  text NOT NULL,
    signature   text,                                   -- NULL: too fresh to be trusted, read it again
    waiting     boolean NOT NULL DEFAULT false,         -- its last line is still being written
    read_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace, session_id)
);

CREATE TABLE ledger_fault (
    workspace   text NOT NULL,
    session_id  text NOT NULL,
    line        integer NOT NULL,                       -- 0: the session as a whole
    kind        text NOT NULL,
    reason      text NOT NULL,
    ordinal     integer NOT NULL,
    PRIMARY KEY (workspace, session_id, ordinal),
    FOREIGN KEY (workspace, session_id) REFERENCES session_reading ON DELETE CASCADE
);

CREATE TABLE session (
    workspace           text NOT NULL REFERENCES workspace ON DELETE CASCADE,
    session_id          text NOT NULL,
    status              text NOT NULL CHECK (status IN ('open', 'finalized')),
    question            text NOT NULL,
    database            text NOT NULL,
    schema              text NOT NULL,
    dialect             text NOT NULL,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    updated_by          text NOT NULL,
    sql                 text,                           -- the last that was neither missing nor blank
    -- What the effective view makes of its decisions:
    effective_question  text NOT NULL,
    question_id         text NOT NULL,
    approved_seq        integer,
    context             text NOT NULL,
    rejected_cards      text[] NOT NULL,
    PRIMARY KEY (workspace, session_id)
);

-- A line once read is never changed or removed, whatever becomes of its file.
CREATE TABLE decision (
    workspace    text NOT NULL,
    session_id   text NOT NULL,
    seq          integer NOT NULL,
    ts           timestamptz NOT NULL,
    type         text NOT NULL,
    phase        smallint NOT NULL,
    subject      text NOT NULL,
    detail       text NOT NULL,
    rationale    text NOT NULL,
    concepts     text[] NOT NULL,
    tables       text[] NOT NULL,
    text_key     text NOT NULL,                         -- equal for clarifications that count as equal
    -- What the effective view makes of it:
    effective    boolean NOT NULL,
    outcome      text CHECK (outcome IN ('promoted', 'declined', 'candidate', 'refused')),
    promoted_by  integer,                               -- seq of the memory_promoted that decides
    PRIMARY KEY (workspace, session_id, seq),
    FOREIGN KEY (workspace, session_id) REFERENCES session ON DELETE CASCADE
);
CREATE INDEX decision_promoted ON decision (workspace, session_id, seq) WHERE outcome = 'promoted';

-- The last number given to a card of either prefix. Numbers are never used again.
CREATE TABLE card_number (
    workspace  text NOT NULL REFERENCES workspace ON DELETE CASCADE,
    prefix     text NOT NULL CHECK (prefix IN ('mem', 'sq')),
    last       integer NOT NULL,
    PRIMARY KEY (workspace, prefix)
);

-- How texts are searched and compared by administrators: without case, accents, and differences of spelling that Unicode
-- knows of. In upper case first, since a Greek sigma has two small letters. Signs that carry a meaning of their own, as
-- the vowels of Indian scripts do, are kept.
CREATE FUNCTION folded(original text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN regexp_replace(
    lower(upper(normalize(original, NFKD))),
    '[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]',
    '', 'g');

CREATE FUNCTION all_folded(originals text[]) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(SELECT folded(original) FROM unnest(originals) AS original);

-- The texts, each ended by a unit separator, so that none runs over into the next. array_to_string is only not immutable
-- because of types that are no text.
CREATE FUNCTION separated(texts text[]) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN array_to_string(texts, E'\x1f') || E'\x1f';

CREATE TABLE card (
    workspace    text NOT NULL REFERENCES workspace ON DELETE CASCADE,
    card_id      text NOT NULL,
    family       text NOT NULL CHECK (family IN ('concept', 'sql_rule', 'pitfall', 'solved_question')),
    version      integer NOT NULL DEFAULT 1 CHECK (version > 0),
    origin       text NOT NULL CHECK (origin IN ('session', 'hand')),
    edited       boolean NOT NULL DEFAULT false,        -- an administrator's word stands: no ledger overwrites it
    flags        text[] NOT NULL DEFAULT '{}',
    subject      text NOT NULL DEFAULT '',
    detail       text NOT NULL DEFAULT '',
    rationale    text NOT NULL DEFAULT '',
    question     text NOT NULL DEFAULT '',
    sql          text NOT NULL DEFAULT '',
    dialect      text NOT NULL DEFAULT '',              -- that the SQL is written in
    context      text NOT NULL DEFAULT '',
    database     text NOT NULL DEFAULT '',
    schema       text NOT NULL DEFAULT '',
    concepts     text[] NOT NULL DEFAULT '{}',
    text_key     text NOT NULL,                         -- equal for texts (or questions) that count as equal
    fingerprint  text NOT NULL,                         -- of what the card's point is made from
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now(),
    updated_by   text NOT NULL,
    -- What lists search, the title first:
    search_text  text NOT NULL GENERATED ALWAYS AS (folded(separated(
        ARRAY[subject || question, card_id, detail, rationale, sql, context] || concepts))) STORED,
    concept_keys text[] NOT NULL GENERATED ALWAYS AS (all_folded(concepts)) STORED,
    PRIMARY KEY (workspace, card_id)
);
CREATE INDEX card_text ON card (workspace, text_key);

CREATE TABLE question (
    workspace    text NOT NULL REFERENCES workspace ON DELETE CASCADE,
    question_id  text NOT NULL,
    text         text NOT NULL,
    text_key     text NOT NULL,
    fingerprint  text NOT NULL,
    PRIMARY KEY (workspace, question_id)
);
CREATE INDEX question_text ON question (workspace, text_key);

-- A source without a card is consumed: an administrator deleted its card, which is not made again from it.
CREATE TABLE card_source (
    workspace      text NOT NULL REFERENCES workspace ON DELETE CASCADE,
    session_id     text NOT NULL,
    seq            integer NOT NULL,
    decision_type  text NOT NULL,
    decided_by     integer NOT NULL,                    -- seq of the decision that made it a source
    text_key       text NOT NULL,
    card_id        text,
    question_id    text,
    PRIMARY KEY (workspace, session_id, seq),
    FOREIGN KEY (workspace, card_id) REFERENCES card ON DELETE SET NULL (card_id),
    FOREIGN KEY (workspace, question_id) REFERENCES question
);
CREATE INDEX card_source_card ON card_source (workspace, card_id);
CREATE INDEX card_source_text ON card_source (workspace, text_key);
CREATE INDEX card_source_question ON card_source (workspace, question_id);

CREATE TABLE card_link (
    workspace  text NOT NULL,
    source_id  text NOT NULL,
    target_id  text NOT NULL,
    meaning    text NOT NULL,
    PRIMARY KEY (workspace, source_id, target_id),
    CHECK (source_id <> target_id),
    FOREIGN KEY (workspace, source_id) REFERENCES card ON DELETE CASCADE,
    FOREIGN KEY (workspace, target_id) REFERENCES card ON DELETE CASCADE
);
CREATE INDEX card_link_target ON card_link (workspace, target_id);

CREATE TABLE card_dependency (
    workspace  text NOT NULL,
    card_id    text NOT NULL,
    database   text NOT NULL,
    schema     text NOT NULL,
    "table"    text NOT NULL,
    "column"   text NOT NULL,
    PRIMARY KEY (workspace, card_id, database, schema, "table", "column"),
    FOREIGN KEY (workspace, card_id) REFERENCES card ON DELETE CASCADE
);
CREATE INDEX card_dependency_object ON card_dependency (workspace, "table", "column");

-- The embedding identities whose collections are kept for a workspace.
CREATE TABLE embedding_identity (
    workspace      text NOT NULL REFERENCES workspace ON DELETE CASCADE,
    identity       text NOT NULL,
    settings       jsonb NOT NULL,
    registered_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace, identity)
);

-- What one point in one physical collection should hold (wanted; NULL: nothing) and is known to hold (certified).
CREATE TABLE projection (
    workspace     text NOT NULL,
    identity      text NOT NULL,
    collection    text NOT NULL CHECK (collection IN ('memory_cards', 'solved_questions', 'questions')),
    item_id       text NOT NULL,
    wanted        text,
    wanted_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    pending       boolean NOT NULL DEFAULT true,
    certified     text,
    certified_at  timestamptz,
    attempts      integer NOT NULL DEFAULT 0,
    next_try      timestamptz,
    reason        text,
    truncated     boolean NOT NULL DEFAULT false,
    PRIMARY KEY (workspace, identity, collection, item_id),
    FOREIGN KEY (workspace, identity) REFERENCES embedding_identity ON DELETE CASCADE
);
CREATE INDEX projection_pending ON projection (workspace, identity, collection, wanted_at) WHERE pending;

-- Vectors already computed, so that no text is embedded twice.
CREATE TABLE embedding (
    workspace  text NOT NULL REFERENCES workspace ON DELETE CASCADE,
    identity   text NOT NULL,
    role       text NOT NULL,
    text_hash  text NOT NULL,
    vector     bytea NOT NULL,                          -- little-endian float32
    truncated  boolean NOT NULL,
    PRIMARY KEY (workspace, identity, role, text_hash)
);

CREATE TABLE admin_edit (
    workspace     text NOT NULL REFERENCES workspace ON DELETE CASCADE,
    edit_id       bigint GENERATED ALWAYS AS IDENTITY,
    principal     text NOT NULL,
    submitted_at  timestamptz NOT NULL DEFAULT now(),
    operation     text NOT NULL,
    card_id       text,                                 -- which card; of a merge, the one that is kept
    merged_id     text,                                 -- of a merge, the other
    content       jsonb,                                -- dropped once it is applied
    state         text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'applied', 'refused')),
    reason        text,
    finished_at   timestamptz,
    PRIMARY KEY (workspace, edit_id)
);
CREATE INDEX admin_edit_waiting ON admin_edit (workspace, edit_id) WHERE state = 'waiting';

-- Row-level security is enabled but not forced: forced, the owner's own backfills would change no row and say nothing.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'session_reading', 'ledger_fault', 'session', 'decision', 'card_number', 'card', 'question', 'card_source',
        'card_link', 'card_dependency', 'embedding_identity', 'projection', 'embedding', 'admin_edit'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY workspace_only ON %I USING (workspace = current_setting(''memory.workspace'', true)) '
            'WITH CHECK (workspace = current_setting(''memory.workspace'', true))', name);
    END LOOP;
END $$;

-- Whatever changes a card or a question also changes, in the same transaction, what its points should hold. The rule
-- stands here so that no code path can forget it.
CREATE FUNCTION collection_of(family text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE family WHEN 'solved_question' THEN 'solved_questions' ELSE 'memory_cards' END
$$;

-- Two transactions that do not see each other yet, one with a new card and one with a new identity, would leave the card
-- without a point in it. So whoever changes a card or a question waits for a new identity, which waits for all of them.
CREATE FUNCTION identities_key(of_workspace text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT hashtextextended('identities of ' || of_workspace, 0)
$$;

CREATE FUNCTION want_point(of_workspace text, of_collection text, item text, fingerprint text)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO projection (workspace, identity, collection, item_id, wanted)
    SELECT of_workspace, i.identity, of_collection, item, fingerprint
    FROM embedding_identity i
    WHERE i.workspace = of_workspace
    ON CONFLICT (workspace, identity, collection, item_id) DO UPDATE
    SET wanted = excluded.wanted, wanted_at = clock_timestamp(), pending = true,
        attempts = 0, next_try = NULL, reason = NULL
    WHERE projection.wanted IS DISTINCT FROM excluded.wanted
$$;

CREATE FUNCTION remove_point(of_workspace text, of_collection text, item text) RETURNS void LANGUAGE sql AS $$
    -- By every column of the key: without the identities, all projections of the workspace would be looked through.
    UPDATE projection
    SET wanted = NULL, wanted_at = clock_timestamp(), pending = true, attempts = 0, next_try = NULL, reason = NULL
    WHERE workspace = of_workspace AND collection = of_collection AND item_id = item
        AND identity = ANY(ARRAY(SELECT i.identity FROM embedding_identity i WHERE i.workspace = of_workspace))
$$;

-- The points that do not hold yet what the archive wants. A workspace that keeps no projections for the identity wants
-- one for everything, from now on.
CREATE FUNCTION pending_points(of_workspace text, of_identity text)
RETURNS TABLE (wanted_at timestamptz, next_try timestamptz) LANGUAGE sql STABLE AS $$
    SELECT p.wanted_at, p.next_try
    FROM projection p
    WHERE p.workspace = of_workspace AND p.identity = of_identity AND p.pending
    UNION ALL
    SELECT now(), NULL
    FROM (
        SELECT card_id FROM card WHERE workspace = of_workspace
        UNION ALL
        SELECT question_id FROM question WHERE workspace = of_workspace) AS everything
    WHERE NOT EXISTS (SELECT FROM embedding_identity WHERE workspace = of_workspace AND identity = of_identity)
$$;

CREATE FUNCTION card_point() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM remove_point(old.workspace, collection_of(old.family), old.card_id);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(identities_key(new.workspace));
        PERFORM want_point(new.workspace, collection_of(new.family), new.card_id, new.fingerprint);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION question_point() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM remove_point(old.workspace, 'questions', old.question_id);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(identities_key(new.workspace));
        PERFORM want_point(new.workspace, 'questions', new.question_id, new.fingerprint);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER card_point AFTER INSERT OR DELETE OR UPDATE OF fingerprint ON card
    FOR EACH ROW EXECUTE FUNCTION card_point();
CREATE TRIGGER question_point AFTER INSERT OR DELETE OR UPDATE OF fingerprint ON question
    FOR EACH ROW EXECUTE FUNCTION question_point();

-- An identity that is new to a workspace wants a point for everything that the archive holds.
CREATE FUNCTION fill_identity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(identities_key(new.workspace));
    INSERT INTO projection (workspace, identity, collection, item_id, wanted)
    SELECT new.workspace, new.identity, collection_of(family), card_id, fingerprint
    FROM card WHERE workspace = new.workspace
    UNION ALL
    SELECT new.workspace, new.identity, 'questions', question_id, fingerprint
    FROM question WHERE workspace = new.workspace;
    RETURN NULL;
END $$;

CREATE TRIGGER fill_identity AFTER INSERT ON embedding_identity
    FOR EACH ROW EXECUTE FUNCTION fill_identity();

-- The runtime role cannot delete from workspace, which row security does not guard. This removes the one workspace that
-- its transaction names, with all that the archive holds of it; the migration lets nobody else call it.
CREATE FUNCTION remove_workspace() RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    named CONSTANT text := current_setting('memory.workspace', true);
BEGIN
    -- First what each deleted card and question would otherwise change: its projections, and its sources.
    DELETE FROM embedding_identity WHERE workspace = named;
    DELETE FROM card_source WHERE workspace = named;
    DELETE FROM workspace WHERE workspace = named;
    RETURN FOUND;
END $$;
REVOKE ALL ON FUNCTION remove_workspace() FROM PUBLIC;
