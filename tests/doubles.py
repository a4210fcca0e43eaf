"""Stand-ins behind the library's own protocols, for tests in which a model's meaning plays no part."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any

import numpy as np

from memory_pipeline.embedding.base import Role, Vectors
from memory_pipeline.errors import EmbedderUnavailable, IndexUnavailable
from memory_pipeline.text import digest


class HashEmbedder:
    """Equal texts get equal vectors, others have nothing in common. Counts what it was asked for.

    Of two with different salts, neither knows what the other's vectors mean.
    """

    def __init__(self, dimension: int = 384, *, salt: str = "") -> None:
        self.dimension = dimension
        self.salt = salt
        self.embedded = 0
        self.away = False
        self.refused = frozenset()

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        if self.away:
            raise EmbedderUnavailable("the model is away")
        if refused := self.refused.intersection(texts):
            raise ValueError(f"cannot embed {sorted(refused)}")
        self.embedded += len(texts)
        vectors = [self._vector(text) for text in texts]
        return np.array(vectors, dtype=np.float32).reshape(len(texts), self.dimension)

    def truncates(self, texts: Sequence[str], role: Role) -> list[bool]:
        return [len(text) > 2000 for text in texts]

    def _vector(self, text: str) -> Vectors:
        generator = np.random.default_rng(int(digest(self.salt + text)[:16], 16))
        vector = generator.standard_normal(self.dimension)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


class WatchedIndex:
    """The real index, with hooks: something to do before or after a write, or to be away."""

    def __init__(self, index) -> None:
        self._index = index
        self.before_upsert = lambda: None
        self.after_upsert = lambda: None
        self.away = False
        self.upserted = 0
        self.deleted = 0
        self.searched = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    def upsert(self, target, points):
        if self.away:
            raise IndexUnavailable("the index is away")
        self.before_upsert()
        held = self._index.upsert(target, points)
        self.upserted += len(held)
        self.after_upsert()
        return held

    def search(self, target, searches):
        self.searched.append(target)
        return self._index.search(target, searches)

    def delete(self, target, ids):
        if self.away:
            raise IndexUnavailable("the index is away")
        self.deleted += len(ids)
        self._index.delete(target, ids)


def kill_this_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
