"""Dense vectors of texts, each computed once: kept in the archive by embedding identity, role and text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memory_pipeline.archive import embeddings
from memory_pipeline.embedding.base import Role, Vectors
from memory_pipeline.text import digest

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Database
    from memory_pipeline.embedding.base import Embedder
    from memory_pipeline.points import PointText


@dataclass(frozen=True, slots=True)
class KnownVector:
    """A text's vector, of shape (dimension,), and whether the model read only the text's beginning."""

    vector: Vectors
    truncated: bool


TextKey = tuple[Role, str]
"""A role and the hash of a text."""


def text_key(text: PointText) -> TextKey:
    """What a text's vector is kept under."""
    return text.role, digest(text.text)


def known_vectors(
    database: Database, embedder: Embedder, workspace: str, identity: str, texts: Iterable[PointText]
) -> dict[TextKey, KnownVector]:
    """The vectors of the texts, from the archive or else from the model, with no transaction open meanwhile.

    Args:
        database: the archive.
        embedder: loaded only when a text is new.
        workspace: whose texts these are.
        identity: the hash of the embedder's identity.
        texts: any number, doubles allowed.

    Raises:
        EmbedderUnavailable: the model cannot be loaded or did not answer; nothing was kept.
    """
    wanted = {text_key(text): text.text for text in texts}
    with database.transaction(workspace) as tx:
        kept = embeddings.find(tx, identity, wanted.keys())
    known = {key: KnownVector(np.frombuffer(e.vector, dtype="<f4"), e.truncated) for key, e in kept.items()}
    fresh = _embed(embedder, {key: text for key, text in wanted.items() if key not in known})
    if fresh:
        with database.transaction(workspace) as tx:
            embeddings.keep(
                tx, identity, {k: embeddings.Kept(v.vector.tobytes(), v.truncated) for k, v in fresh.items()}
            )
    return known | fresh


def _embed(embedder: Embedder, texts: Mapping[TextKey, str]) -> dict[TextKey, KnownVector]:
    found = {}
    for role in Role:
        keys = [key for key in texts if key[0] is role]
        if not keys:
            continue  # a model is not loaded for nothing
        of_role = [texts[key] for key in keys]
        vectors = embedder.embed(of_role, role).astype("<f4")
        for key, vector, truncated in zip(keys, vectors, embedder.truncates(of_role, role), strict=True):
            found[key] = KnownVector(vector, truncated)
    return found
