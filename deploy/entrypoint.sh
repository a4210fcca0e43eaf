#!/bin/sh
# Runs a command with the one secret that cannot stay in a file: dagster.yaml takes the URL of Dagster's storage from the
# environment alone. The pipeline's own settings are read from the files themselves.
set -eu
secret=${MEMORY_SECRETS_DIR:-/run/secrets}/memory_dagster_url
if [ -r "$secret" ]; then
    MEMORY_DAGSTER_URL=$(cat "$secret")
    export MEMORY_DAGSTER_URL
fi
exec "$@"
