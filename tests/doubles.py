"""Stand-ins behind the library's own protocols, for tests in which a model's meaning plays no part."""

from __future__ import annotations

import os
import signal
from collections import Counter
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

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        if self.away:
            raise EmbedderUnavailable("the model is away")
        self.embedded += len(texts)
        vectors = [self._vector(text) for text in texts]
        return np.array(vectors, dtype=np.float32).reshape(len(texts), self.dimension)

    def truncates(self, texts: Sequence[str], role: Role) -> list[bool]:
        return [len(text) > 2000 for text in texts]

    def close(self) -> None:
        """Nothing: it holds nothing."""

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


class FaultyEmbedder(HashEmbedder):
    """Refuses some texts, has something to do before it embeds, and counts how often each text was embedded."""

    def __init__(self, dimension: int = 384, *, salt: str = "") -> None:
        super().__init__(dimension, salt=salt)
        self.before_embed = lambda: None
        self.refused: dict[str, Exception] = {}
        """Part of a text → what is raised for whatever texts it is among."""
        self.texts: Counter[str] = Counter()

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        self.before_embed()
        for part, error in self.refused.items():
            if any(part in text for text in texts):
                raise error
        vectors = super().embed(texts, role)
        self.texts.update(texts)
        return vectors


class FaultyIndex(WatchedIndex):
    """The real index, which refuses some items, or whose answers are lost after it did what it was asked for."""

    def __init__(self, index) -> None:
        super().__init__(index)
        self.refused: dict[str, Exception | None] = {}
        """Item → what is raised for whatever batch it is in; None when the answer only leaves it out."""
        self.answers_lost = False
        self.writes: Counter[str] = Counter()
        """Item → how often it was written."""
        self.batches: list[tuple[str, int]] = []
        """Collection and number of points of each write."""

    def upsert(self, target, points):
        for error in filter(None, (self.refused.get(point.payload["item"]) for point in points)):
            raise error
        accepted = [point for point in points if point.payload["item"] not in self.refused]
        held = super().upsert(target, accepted)
        self.writes.update(point.payload["item"] for point in accepted)
        self.batches.append((target.collection, len(accepted)))
        self._answer()
        return held

    def delete(self, target, ids):
        super().delete(target, ids)
        self._answer()

    def _answer(self) -> None:
        if self.answers_lost:
            raise IndexUnavailable("no answer in time")


def kill_this_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
