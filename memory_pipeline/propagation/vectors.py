"""Dense vectors of texts, each computed once: kept in the archive by embedding identity, role and text."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from memory_pipeline.archive import embeddings
from memory_pipeline.archive.sessions import Progress, no_progress
from memory_pipeline.embedding.base import READ_AT_MOST, Role, Vectors
from memory_pipeline.text import digest

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Database
    from memory_pipeline.embedding.base import Embedder, EmbeddingIdentity
    from memory_pipeline.points import PointText
    from memory_pipeline.runtime import Runtime


@dataclass(frozen=True, slots=True)
class KnownVector:
    """A text's vector, of shape (dimension,), and whether the model read only the text's beginning."""

    vector: Vectors
    truncated: bool


TextKey = tuple[Role, str]
"""A role and the hash of a text."""

_KEPT_EVERY = 1.0  # seconds of a model's work, which a kill may lose


def text_key(text: PointText) -> TextKey:
    """What a text's vector is kept under."""
    return text.role, digest(text.text)


def known_vectors(
    runtime: Runtime,
    workspace: str,
    identity: EmbeddingIdentity,
    texts: Iterable[PointText],
    progress: Progress = no_progress,
) -> dict[TextKey, KnownVector]:
    """The vectors of the texts, from the archive or else from the model, with no transaction open meanwhile.

    What the model makes is kept every second (or batch, of the setting's size), so that a kill loses little. Of a
    very long text it is given the beginning, and the vector says so; what it is kept under stands for all of the text.

    Args:
        runtime: archive and models, of which one is loaded only when a text is new.
        workspace: whose texts these are.
        identity: which vectors of them.
        texts: any number, doubles allowed.
        progress: told, after each batch, how many vectors there are of how many.

    Raises:
        EmbedderUnavailable: the model cannot be loaded or did not answer; what it made before is kept.
    """
    database = runtime.database
    wanted = {text_key(text): text.text for text in texts}
    with database.transaction(workspace, by_key=True) as tx:
        kept = embeddings.find(tx, identity.hash, wanted.keys())
    known = {key: KnownVector(np.frombuffer(e.vector, dtype="<f4"), e.truncated) for key, e in kept.items()}
    missing = {key: text for key, text in wanted.items() if key not in known}
    with _Keeping(database, workspace, identity.hash) as keeping:
        for fresh in _embedded(runtime, identity, missing):
            keeping.take(fresh)
            known |= fresh
            progress(len(known), len(wanted))
    return known


def missing_vectors(
    runtime: Runtime, workspace: str, identity: EmbeddingIdentity, texts: Iterable[PointText]
) -> set[TextKey]:
    """What the vectors of these texts would be kept under that the archive does not keep yet."""
    wanted = {text_key(text) for text in texts}
    with runtime.database.transaction(workspace, by_key=True) as tx:
        return wanted - embeddings.find(tx, identity.hash, wanted).keys()


class _Keeping:
    """Keeps what a model makes in the archive, every second and at the end, whatever it ends with."""

    def __init__(self, database: Database, workspace: str, identity: str) -> None:
        self._database = database
        self._workspace = workspace
        self._identity = identity
        self._unkept: dict[TextKey, embeddings.Kept] = {}

    def __enter__(self) -> Self:
        self._kept_at = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._keep()

    def take(self, made: Mapping[TextKey, KnownVector]) -> None:
        self._unkept |= {key: embeddings.Kept(v.vector.tobytes(), v.truncated) for key, v in made.items()}
        if time.monotonic() - self._kept_at >= _KEPT_EVERY:
            self._keep()

    def _keep(self) -> None:
        if self._unkept:
            with self._database.transaction(self._workspace, by_key=True) as tx:
                embeddings.keep(tx, self._identity, self._unkept)
        self._unkept, self._kept_at = {}, time.monotonic()


def _embedded(
    runtime: Runtime, identity: EmbeddingIdentity, texts: Mapping[TextKey, str]
) -> Iterator[dict[TextKey, KnownVector]]:
    """The vectors of new texts as the model makes them, some at a time; no model is loaded for none."""
    size = runtime.settings.embedding_batch_size
    for role in Role:
        of_role = sorted(key for key in texts if key[0] is role)
        for start in range(0, len(of_role), size):
            yield _embed(
                runtime.embedder_of(identity), role, {key: texts[key] for key in of_role[start : start + size]}
            )


def _embed(embedder: Embedder, role: Role, texts: Mapping[TextKey, str]) -> dict[TextKey, KnownVector]:
    read = [text[:READ_AT_MOST] for text in texts.values()]
    vectors = embedder.embed(read, role).astype("<f4")
    truncated = [
        cut or len(text) > READ_AT_MOST
        for text, cut in zip(texts.values(), embedder.truncates(read, role), strict=True)
    ]
    return {key: KnownVector(v, cut) for key, v, cut in zip(texts, vectors, truncated, strict=True)}
