"""The least that shows whether index and model answer, for whoever says that they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_pipeline.cards import Collection
from memory_pipeline.embedding.base import Role

if TYPE_CHECKING:
    from memory_pipeline.runtime import Runtime

_ANY = "any"  # the name of a workspace that need not exist


def index_answers(runtime: Runtime) -> None:
    """Ask the index for what needs no collection; a server wants its key for it.

    Raises:
        IndexUnavailable: it does not answer.
    """
    runtime.index.identities(_ANY, Collection.MEMORY_CARDS.value)


def model_answers(runtime: Runtime) -> int:
    """Embed a text with the configured model, which is loaded where it is not yet; the length of the vector.

    Raises:
        EmbedderUnavailable: it cannot be loaded, does not answer, or answers with vectors of another dimension.
    """
    [vector] = runtime.embedder.embed(["ready?"], Role.QUERY)
    return len(vector)
