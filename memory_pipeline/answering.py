"""The least that shows whether index and model answer, for whoever says that they do."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from memory_pipeline.archive import identities, workspaces
from memory_pipeline.cards import Collection
from memory_pipeline.embedding.base import Role
from memory_pipeline.errors import IndexIncompatible, UnknownWorkspace
from memory_pipeline.points import stored_identity

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Database
    from memory_pipeline.embedding.base import EmbeddingIdentity
    from memory_pipeline.runtime import Runtime

_ANY = "any"  # the name of a workspace that need not exist


def index_answers(runtime: Runtime) -> None:
    """Ask the index for what needs no collection; a server wants its key for it.

    Raises:
        IndexUnavailable: it does not answer.
    """
    runtime.index.identities(_ANY, Collection.MEMORY_CARDS.value)


def model_answers(runtime: Runtime, identity: EmbeddingIdentity) -> int:
    """Embed a text with the model of an identity, which is loaded where it is not yet; the length of the vector.

    Raises:
        EmbedderUnavailable: it cannot be loaded, does not answer, or answers with vectors of another dimension.
    """
    [vector] = runtime.embedder_of(identity).embed(["ready?"], Role.QUERY)
    return len(vector)


def live_identities(runtime: Runtime, database: Database) -> set[EmbeddingIdentity]:
    """The identities that recall uses, workspace by workspace, as far as the archive knows.

    They are other than the configured one until what the settings name is filled.

    Args:
        runtime: the services.
        database: its archive, perhaps with less patience.

    Raises:
        ArchiveUnavailable, SchemaOutOfDate.
    """
    found = set()
    for workspace in workspaces.names(database):
        # One that was removed meanwhile, or is of another version of this library, which is said of its collections.
        with suppress(UnknownWorkspace, IndexIncompatible), database.transaction(workspace) as tx:
            settings = identities.live(tx)
            found.add(stored_identity(settings) if settings else runtime.identity)
    return found
