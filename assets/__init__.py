"""The Dagster assets and their checks: thin, calling the library."""
