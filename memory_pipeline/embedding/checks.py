"""What every backend does to vectors before anyone else sees them, and where its engine may run."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from memory_pipeline.embedding.base import Vectors
from memory_pipeline.errors import EmbedderUnavailable


def checked(raw: NDArray[np.floating], *, count: int, dimension: int, model: str) -> Vectors:
    """The vectors of a model as the library uses them: float32, each row of Euclidean length 1.

    Args:
        raw: what the model answered, meant to be of shape (count, dimension).
        count: how many texts it was given.
        dimension: the length of a vector.
        model: its name, for the message.

    Raises:
        EmbedderUnavailable: another shape, a value that is not finite, or a vector without a direction.
    """
    if raw.shape != (count, dimension):
        raise EmbedderUnavailable(f"{model} answered with vectors of shape {raw.shape} instead of {(count, dimension)}")
    vectors = raw.astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not (lengths > 0).all():
        raise EmbedderUnavailable(f"{model} answered with a vector that is not finite, or zero")
    return np.asarray(vectors / lengths, dtype=np.float32)


class ForkGuard:
    """Refuses to run an engine in a forked child of a process in which it has run.

    The engine's threads do not exist in the child, and its first parallel region would wait for them for ever. Loading
    the model again does not help: it is the process's thread pool that waits. One guard stands for one engine.
    """

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._process: int | None = None

    def running(self) -> None:
        """Remember that the engine runs in this process."""
        self._process = os.getpid()

    def check(self) -> None:
        """Refuse a forked child. To be called before any lock is taken: the parent may have held it when it forked.

        Raises:
            EmbedderUnavailable: the engine ran in a parent of this process.
        """
        if self._process not in (None, os.getpid()):
            raise EmbedderUnavailable(
                f"{self._engine} cannot run in a forked child of a process in which it has run: start it with 'spawn'"
            )
