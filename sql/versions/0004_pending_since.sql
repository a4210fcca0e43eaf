-- A further change of what is pending already does not set back since when it is: a card that is edited again and again
-- and never projected would otherwise never be late.
CREATE OR REPLACE FUNCTION want_point(of_workspace text, of_collection text, item text, fingerprint text)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO projection (workspace, identity, collection, item_id, wanted)
    SELECT of_workspace, i.identity, of_collection, item, fingerprint
    FROM embedding_identity i
    WHERE i.workspace = of_workspace
    ON CONFLICT (workspace, identity, collection, item_id) DO UPDATE
    SET wanted = excluded.wanted, pending = true, attempts = 0, next_try = NULL, reason = NULL,
        wanted_at = CASE WHEN projection.pending THEN projection.wanted_at ELSE clock_timestamp() END
    WHERE projection.wanted IS DISTINCT FROM excluded.wanted
$$;

CREATE OR REPLACE FUNCTION remove_point(of_workspace text, of_collection text, item text) RETURNS void LANGUAGE sql AS $$
    -- By every column of the key: without the identities, all projections of the workspace would be looked through.
    UPDATE projection
    SET wanted = NULL, pending = true, attempts = 0, next_try = NULL, reason = NULL,
        wanted_at = CASE WHEN pending THEN wanted_at ELSE clock_timestamp() END
    WHERE workspace = of_workspace AND collection = of_collection AND item_id = item
        AND identity = ANY(ARRAY(SELECT i.identity FROM embedding_identity i WHERE i.workspace = of_workspace))
$$;
