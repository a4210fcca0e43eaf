"""Any sentence-transformers model, from a directory or the Hugging Face hub; needs the extra of the same name."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from memory_pipeline.embedding.base import Role, Vectors
from memory_pipeline.embedding.checks import ForkGuard, checked
from memory_pipeline.embedding.hub import model_directory
from memory_pipeline.embedding.model import MODELS_OWN_PROMPT, Model
from memory_pipeline.errors import EmbedderUnavailable
from memory_pipeline.text import readable

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_GUARD = ForkGuard("sentence-transformers")
_EXTRA = "pip install 'memory-pipeline[sentence-transformers]'"
# The names under which models declare the prompts of the two sides; sentence-transformers tries the same ones.
_PROMPT_NAMES = {Role.QUERY: ("query",), Role.PASSAGE: ("document", "passage", "corpus")}


class SentenceTransformers:
    """A local model run by sentence-transformers. Safe to use from several threads, one at a time.

    Its files are looked for first and torch is imported only when they are there, so that a missing model is reported
    within seconds. Code that a model brings along is never run.
    """

    def __init__(self, model: Model, *, device: str = "cpu", batch_size: int = 32) -> None:
        self._model = model
        self._device = device
        self._batch_size = batch_size
        # Around every use: the fast tokenizers fail ("Already borrowed") when two threads change their padding at once.
        self._lock = threading.Lock()
        self._engine: SentenceTransformer | None = None

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return self._model.dimension

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """The vectors of the texts, in their order.

        Args:
            texts: any number, the empty list included, for which nothing is imported. A NUL byte counts as a space.
            role: which prompt to prepend: the one of the settings, else the one that the model declares, else none.

        Returns:
            float32 of shape (len(texts), dimension), each row of Euclidean length 1.

        Raises:
            EmbedderUnavailable: the extra is not installed, the model is neither on this machine nor to be had, cannot
                be loaded or run, or makes vectors of another dimension than the settings say.
        """
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        _GUARD.check()
        with self._lock:
            engine = self._loaded()
            raw = self._encoded(engine, [readable(text) for text in texts], role)
        return checked(raw, count=len(texts), dimension=self.dimension, model=self._model.model)

    def truncates(self, texts: Sequence[str], role: Role) -> list[bool]:
        """For each text, whether the model cuts it off: its prompt and tokens exceed `max_seq_length`.

        Raises:
            EmbedderUnavailable: as `embed`.
        """
        if not texts:
            return []
        _GUARD.check()
        with self._lock:
            engine = self._loaded()
            window = engine.max_seq_length
            if not isinstance(window, int):  # a model without attention reads texts of any length
                return [False] * len(texts)
            prompt = self._prompt(engine, role)
            tokens = engine.tokenizer([prompt + readable(text) for text in texts], truncation=False, verbose=False)
            return [len(ids) > window for ids in tokens["input_ids"]]

    def close(self) -> None:
        """Let go of the weights; they are loaded again when there is something to embed."""
        self._engine = None

    def _encoded(self, engine: SentenceTransformer, texts: list[str], role: Role) -> np.ndarray:
        try:
            return np.asarray(
                engine.encode(
                    texts,
                    prompt=self._prompt(engine, role),
                    batch_size=self._batch_size,
                    normalize_embeddings=True,
                    convert_to_numpy=True,
                    show_progress_bar=False,
                )
            )
        except (RuntimeError, ValueError, IndexError) as error:
            raise EmbedderUnavailable(f"{self._model.model} failed on a batch of {len(texts)}: {error}") from error

    def _prompt(self, engine: SentenceTransformer, role: Role) -> str:
        declared = self._model.query_prompt if role is Role.QUERY else self._model.passage_prompt
        if declared != MODELS_OWN_PROMPT:
            return declared
        names = [*_PROMPT_NAMES[role], engine.default_prompt_name]
        return next((prompt for name in names if name and (prompt := engine.prompts.get(name))), "")

    def _loaded(self) -> SentenceTransformer:
        if self._engine is None:
            _require_extra()
            engine = self._load(str(model_directory(self._model.model, self._model.revision)))
            self._check_dimension(engine)
            self._engine = engine
            _GUARD.running()
        return self._engine

    def _load(self, directory: str) -> SentenceTransformer:
        try:
            from sentence_transformers import SentenceTransformer  # noqa: PLC0415  # 6 to 20 seconds, 450 MB

            with _no_progress_bar():
                return SentenceTransformer(
                    directory, device=self._device, local_files_only=True, trust_remote_code=False
                )
        except Exception as error:  # whatever it is that a model's files or a device do wrong, it cannot be used
            raise EmbedderUnavailable(
                f"{self._model.model} cannot be loaded on {self._device}: {type(error).__name__}: {error}"
            ) from error

    def _check_dimension(self, engine: SentenceTransformer) -> None:
        # Renamed in sentence-transformers 6, where the old name warns.
        ask = getattr(engine, "get_embedding_dimension", None) or engine.get_sentence_embedding_dimension
        found = ask()
        if found not in (None, self.dimension):
            raise EmbedderUnavailable(
                f"MEMORY_EMBEDDING_DIMENSION is {self.dimension}, and {self._model.model} makes vectors of {found}"
            )


@contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Keep the bar over a model's weights, which are there within a second, off standard error."""
    from transformers.utils import logging  # noqa: PLC0415  # comes with the extra

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]  # likewise


def _require_extra() -> None:
    try:
        missing = find_spec("sentence_transformers") is None
    except ValueError:  # what find_spec makes of a module that was blocked
        missing = True
    if missing:
        raise EmbedderUnavailable(f"sentence-transformers is not installed: {_EXTRA}")
