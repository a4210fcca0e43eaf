-- name: role
-- What the connected role may do beside tables.
SELECT rolname AS name, rolsuper AS superuser, rolbypassrls AS passes_row_security,
    has_schema_privilege('public', 'CREATE') AS creates
FROM pg_roles WHERE rolname = current_user

-- name: tables
-- Every table, as the connected role stands to it; what it has through another role is its own.
SELECT c.relname AS name, pg_has_role(c.relowner, 'USAGE') AS owned, row_security_active(c.oid) AS guarded,
    ARRAY(SELECT privilege FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege
          WHERE NOT has_table_privilege(c.oid, privilege)) AS lacking
FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
ORDER BY c.relname

-- name: server
-- Which server this is, and which database: both stay the same for as long as it runs, by whatever name it is reached.
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
    current_setting('server_encoding') AS encoding, current_database() AS database,
    concat(pg_postmaster_start_time(), ' ', (SELECT oid FROM pg_database WHERE datname = current_database())) AS place
