"""A workspace to curate: real PostgreSQL and a real embedded index, without a model behind the vectors."""

from __future__ import annotations

from memory_pipeline.archive import workspaces
from memory_pipeline.archive.grants import Role
from memory_pipeline.cards import CardContent, Collection, Family
from memory_pipeline.curation import Curation
from memory_pipeline.edits import Create, Link
from memory_pipeline.errors import EmbedderUnavailable, IndexUnavailable
from memory_pipeline.index.base import CollectionMissing
from memory_pipeline.points import target
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings
from tests.doubles import HashEmbedder, WatchedIndex

CLINIC, WARD = "clinic", "ward"


class Gone:
    """A service of which every use is an error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> None:
        raise self._error


def a_runtime(settings: Settings) -> Runtime:
    """The real archive and the real index, watched, with a stand-in for the model."""
    runtime = Runtime(settings)
    runtime.embedder = HashEmbedder()
    runtime.index = WatchedIndex(runtime.index)
    return runtime


def all_away(runtime: Runtime) -> Runtime:
    """The same runtime with index and model away."""
    runtime.index = Gone(IndexUnavailable("the index is away"))
    runtime.embedder = Gone(EmbedderUnavailable("the model is away"))
    return runtime


def a_workspace(runtime: Runtime, name: str = CLINIC) -> str:
    workspaces.make(runtime.database, name, language="italian", principal=runtime.settings.acting_principal)
    return name


def a_card(subject: str = "active patient", detail: str = "flag_attivo = TRUE", **others) -> CardContent:
    return CardContent(**{"family": Family.CONCEPT, "subject": subject, "detail": detail, **others})


def a_creation(*links: Link, **content) -> Create:
    return Create(a_card(**content), links)


def points(runtime: Runtime, workspace: str = CLINIC) -> dict[str, int]:
    """Item → version of every point that the index holds of a workspace."""
    found = {}
    for collection in Collection:
        try:
            scanned = list(runtime.index.scan(target(workspace, collection, runtime.identity)))
        except CollectionMissing:
            continue
        found |= {str(point.payload["item"]): int(point.payload["version"]) for point in scanned}
    return found


def granted(runtime: Runtime, workspace: str, role: Role) -> Curation:
    """The curation of somebody with one role."""
    principal = f"a {role}"
    Curation(runtime).give(workspace, principal, role)
    return Curation(runtime, principal)
