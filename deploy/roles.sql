-- Roles and databases, made once, when the server's data directory is made; psql runs it as the superuser.
-- No role here is a superuser or passes row security by. Passwords come from files, and are never printed.
\set owner_password    `cat /run/secrets/postgres_owner_password`
\set runtime_password  `cat /run/secrets/postgres_runtime_password`
\set dagster_password  `cat /run/secrets/postgres_dagster_password`

-- Should one of them fail, the server would log the statement with its password.
SET log_min_error_statement = panic;

CREATE ROLE memory_owner   LOGIN PASSWORD :'owner_password';    -- owns the archive's tables: migrations only
CREATE ROLE memory_runtime LOGIN PASSWORD :'runtime_password';  -- everything else; bound by row security
CREATE ROLE memory_dagster LOGIN PASSWORD :'dagster_password';  -- Dagster's storage

CREATE DATABASE memory  OWNER memory_owner   ENCODING 'UTF8' TEMPLATE template0;
CREATE DATABASE dagster OWNER memory_dagster ENCODING 'UTF8' TEMPLATE template0;

REVOKE ALL ON DATABASE memory, dagster FROM PUBLIC;
GRANT CONNECT ON DATABASE memory TO memory_runtime;
