"""Any model behind a server that speaks OpenAI's embeddings protocol."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Sequence

import numpy as np
from pydantic import BaseModel, ValidationError

from memory_pipeline.embedding.base import Role, Vectors
from memory_pipeline.embedding.checks import checked
from memory_pipeline.embedding.endpoint import Endpoint
from memory_pipeline.embedding.model import Model, Server
from memory_pipeline.errors import EmbedderUnavailable
from memory_pipeline.text import readable

# OpenAI takes 300,000 tokens in a request, and a text has no more tokens than bytes.
_REQUEST_BYTES = 256 * 1024
# Tokens that a server may put around a text: the special ones, and a prompt that it has built in.
_ADDED_TOKENS = 64


class _Embedding(BaseModel):
    index: int
    embedding: list[float]


class _Usage(BaseModel):
    prompt_tokens: int | None = None


class _Answer(BaseModel):
    """What is read of an answer; servers add fields of their own."""

    data: list[_Embedding]
    usage: _Usage | None = None


class OpenAI:
    """The embedder of a model that a server runs. Safe to use from several threads and in forked children.

    The protocol knows no roles. What tells questions from passages is a prompt in front of the text, or a field of the
    request that the server has for it; both belong to the model's identity. The server's address does not: the same
    model behind another one makes the same vectors.
    """

    def __init__(self, model: Model, server: Server, *, batch_size: int = 32) -> None:
        self._model = model
        self._window = server.window
        self._batch_size = batch_size
        self._endpoint = Endpoint(server)
        self._prompts = {Role.QUERY: model.query_prompt, Role.PASSAGE: model.passage_prompt}
        self._fields = {role: json.loads(given or "{}") for role, given in model.fields.items()}

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return self._model.dimension

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """The vectors of the texts, in their order.

        Args:
            texts: any number, the empty list included, for which nobody is asked. A NUL byte counts as a space.
            role: which prompt to prepend, and which fields to send along.

        Returns:
            float32 of shape (len(texts), dimension), each row of Euclidean length 1.

        Raises:
            EmbedderUnavailable: the server is away, refuses the texts, or answers with anything but their vectors.
        """
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        batches = _batches([self._given(text, role) for text in texts], self._batch_size)
        return np.concatenate([self._vectors(batch, role) for batch in batches])

    def truncates(self, texts: Sequence[str], role: Role) -> list[bool]:
        """For each text, whether it fills the model's window, or may do so if the server does not count its tokens.

        The protocol does not say. What it does say is how many tokens a request had, so a text that may be too long is
        sent alone once more. A server that cuts texts counts no further than its window: whoever fills it may be cut.

        Raises:
            EmbedderUnavailable: as `embed`.
        """
        return [self._fills_window(self._given(text, role), role) for text in texts]

    def close(self) -> None:
        """Close the connections to the server; they are opened again when there is something to embed."""
        self._endpoint.close()

    def _given(self, text: str, role: Role) -> str:
        return readable(self._prompts[role] + text)

    def _fills_window(self, text: str, role: Role) -> bool:
        if _most_tokens(text) < self._window:
            return False
        usage = self._asked([text], role).usage
        # One that does not count may say nothing, or nought.
        return not usage or not usage.prompt_tokens or usage.prompt_tokens >= self._window

    def _vectors(self, batch: list[str], role: Role) -> Vectors:
        answered = sorted(self._asked(batch, role).data, key=lambda each: each.index)
        if [each.index for each in answered] != list(range(len(batch))):
            raise EmbedderUnavailable(
                f"the embeddings server answered {len(batch)} texts with {len(answered)} vectors, or misnumbered them"
            )
        if others := {len(each.embedding) for each in answered} - {self.dimension}:
            raise EmbedderUnavailable(
                f"MEMORY_EMBEDDING_DIMENSION is {self.dimension}, and the server makes vectors of {min(others)} for "
                f"{self._model.model}"
            )
        raw = np.array([each.embedding for each in answered], dtype=np.float64)
        return checked(raw, count=len(batch), dimension=self.dimension, model=self._model.model)

    def _asked(self, batch: list[str], role: Role) -> _Answer:
        request = {"model": self._model.model, "input": batch, "encoding_format": "float", **self._fields[role]}
        try:
            return _Answer.model_validate_json(self._endpoint.ask(request))
        except ValidationError as error:
            fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where = ".".join(map(str, fault["loc"]))
            # Without its cause, which quotes the answer.
            raise EmbedderUnavailable(
                f"the embeddings server does not answer as OpenAI's protocol has it ({where or 'all of it'}: "
                f"{fault['type']}): look at what MEMORY_EMBEDDING_URL names"
            ) from None


def _batches(texts: Sequence[str], size: int) -> Iterator[list[str]]:
    """The texts in their order, by so many at most, and no more bytes at once than a request may have."""
    batch: list[str] = []
    room = _REQUEST_BYTES
    for text in texts:
        needed = len(text.encode())
        if batch and (len(batch) == size or needed > room):
            yield batch
            batch, room = [], _REQUEST_BYTES
        batch.append(text)
        room -= needed
    if batch:
        yield batch


def _most_tokens(text: str) -> int:
    """A bound on the tokens of a text, whatever the model: they stand for a byte each at the least.

    In the plain spelling that many tokenizers read first, in which a sign can become several.
    """
    return len(unicodedata.normalize("NFKC", text).encode()) + _ADDED_TOKENS
