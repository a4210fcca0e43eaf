"""Which checks there are, in the order in which they are run and shown."""

from __future__ import annotations

from memory_pipeline.doctor import archive, configuration, index, places, services
from memory_pipeline.doctor.base import LONG, PATIENCE, Check
from memory_pipeline.settings import Settings

_PLACES = ("home", "sessions_root")
_ARCHIVE = ("home", "database_url", "secrets_dir")
_INDEX = ("home", "qdrant_url", "secrets_dir")
_FREE_ROOM = "make room, or mend the permissions of the home (MEMORY_HOME)"
_REACH = "start PostgreSQL, and mend host, port, database, role and password of"


def checks(settings: Settings) -> list[Check]:
    """Every check of an installation of these settings."""
    beside = ("archive",) if settings.embedded_archive else ()  # databases of one server
    return [
        Check("settings", configuration.settings, "mend them: .env.example names each with an example"),
        Check("variables", configuration.variables, "make the .env file and the directory of secrets readable"),
        Check("installation", configuration.installation, "install memory-pipeline anew"),
        Check("home", places.home, _FREE_ROOM, needs=("home",)),
        Check("sessions", places.sessions, "make the sessions root, or set MEMORY_SESSIONS_ROOT", needs=_PLACES),
        Check(
            "archive",
            archive.server,
            "run `memory-pipeline migrate`, which makes the home, and look at its log"
            if settings.embedded_archive
            else f"{_REACH} MEMORY_DATABASE_URL",
            needs=_ARCHIVE,
            seconds=LONG if settings.embedded_archive else PATIENCE,
        ),
        Check(
            "schema",
            archive.schema,
            "run `memory-pipeline migrate`; a newer schema needs the memory-pipeline that belongs to it",
            needs=_ARCHIVE,
            after=("archive",),
        ),
        Check("runtime role", archive.runtime_role, f"{_REACH} MEMORY_DATABASE_URL", _ARCHIVE, after=("archive",)),
        Check("owner", archive.owner, f"{_REACH} MEMORY_OWNER_URL", (*_ARCHIVE, "owner_url"), beside),
        Check("languages", archive.languages, "install the memory-pipeline that knows them", _ARCHIVE, ("schema",)),
        Check(
            "Dagster's storage", services.dagster, f"{_REACH} MEMORY_DAGSTER_URL", (*_ARCHIVE, "dagster_url"), beside
        ),
        Check(
            "index",
            index.engine,
            _FREE_ROOM if settings.qdrant_url is None else "start Qdrant, and mend MEMORY_QDRANT_URL and its API key",
            needs=(*_INDEX, "qdrant_"),
        ),
        Check("model", services.model, "mend MEMORY_EMBEDDING_… and what they name", ("embedding_",), seconds=LONG),
        Check(
            "collections",
            index.collections,
            "run `memory-pipeline project`, or `memory-pipeline rebuild`",
            needs=(*_ARCHIVE, *_INDEX, "embedding_"),
            after=("schema", "runtime role", "index"),
            seconds=LONG,
        ),
        Check("tokens", services.tokens, "mend MEMORY_JWT_KEYS, or its host", ("jwt_", "home", "database_url")),
        *(
            Check(f"database of {workspace}", services.catalog(workspace, url), "mend MEMORY_CATALOG_URLS")
            for workspace, url in settings.catalog_urls.items()
        ),
    ]
