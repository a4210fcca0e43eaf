"""What the index is given of a card or a question: ids, texts, filter fields, fingerprints, and schemas."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection as Items
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from memory_pipeline.cards import CardContent, Collection, Family
from memory_pipeline.embedding import describe
from memory_pipeline.embedding.base import EmbeddingIdentity, Role
from memory_pipeline.embedding.model import Model
from memory_pipeline.errors import IndexIncompatible
from memory_pipeline.index.base import PayloadValue, Schema, Target
from memory_pipeline.lexical import LEXICAL_VERSION
from memory_pipeline.shapes import shape
from memory_pipeline.text import digest, nfc

if TYPE_CHECKING:
    from memory_pipeline.settings import Settings

TEXT_TEMPLATE = "3"
"""Changes whenever `card_texts` or `question_texts` makes another text, or other vectors, from the same content."""

Literals = Items[str]
"""Texts that some SQL of the workspace compares a column with, folded."""

_NAMESPACE = uuid.UUID("9b1c6f0e-5c1d-4a7b-8a46-3a6b0b0d2f11")
_KEYWORDS = ("item", "family", "database", "schema", "tables", "columns")


@dataclass(frozen=True, slots=True)
class PointText:
    """A text that becomes the dense vector `<name>` and, if the collection has it, the sparse one `<name>_lexical`."""

    name: str
    text: str
    role: Role


# Each vector is here because it helps. Vectors of a card's subject alone were tried beside those of its content: of
# BIRD's relevant concepts, 0.81 to 0.83 were then among the first five instead of 0.86.
_DENSE: dict[Collection, tuple[str, ...]] = {
    Collection.MEMORY_CARDS: ("content",),
    Collection.SOLVED_QUESTIONS: ("question", "shape"),
    Collection.QUESTIONS: ("question",),
}
_SPARSE: dict[Collection, tuple[str, ...]] = {
    Collection.MEMORY_CARDS: ("content_lexical",),
    Collection.SOLVED_QUESTIONS: ("question_lexical",),
    Collection.QUESTIONS: ("question_lexical",),
}


def lexical_name(name: str) -> str:
    """The name of the sparse vector beside a dense one."""
    return f"{name}_lexical"


def embedding_identity(settings: Settings) -> EmbeddingIdentity:
    """The identity of the vectors that these settings make; no model is loaded."""
    return _identity(describe(settings))


def _identity(model: Model) -> EmbeddingIdentity:
    return EmbeddingIdentity(**asdict(model), text_template=TEXT_TEMPLATE, lexical=LEXICAL_VERSION)


def stored_identity(settings: Mapping[str, object]) -> EmbeddingIdentity:
    """The identity whose `settings` were stored.

    Raises:
        IndexIncompatible: it is of another version of this library, which made other texts of the same cards.
    """
    identity = _identity(Model.from_identity(settings))
    if differing := [name for name in ("text_template", "lexical") if settings.get(name) != getattr(identity, name)]:
        raise IndexIncompatible(
            f"the index was made by a version of memory-pipeline with another {' and '.join(differing)}: "
            "`memory-pipeline project` fills it for this one"
        )
    return identity


def target(workspace: str, collection: Collection, identity: EmbeddingIdentity) -> Target:
    """The physical collection of an identity, as one workspace sees it."""
    schema = Schema(
        dense=_DENSE[collection],
        sparse=_SPARSE[collection],
        dimension=identity.dimension,
        keywords=_KEYWORDS,
    )
    return Target(workspace, collection.value, identity.hash, schema)


def point_id(workspace: str, item_id: str) -> str:
    """The id of an item's point, fixed for the item's life: `uuid5(workspace, item id)`."""
    return str(uuid.uuid5(_of_workspace(workspace), item_id))


@lru_cache(maxsize=1024)
def _of_workspace(workspace: str) -> uuid.UUID:
    return uuid.uuid5(_NAMESPACE, workspace)


def question_id(text: str) -> str:
    """The id of a distinct question text: texts that are equal in NFC are one question."""
    return f"q-{digest(nfc(text))[:32]}"


def card_texts(content: CardContent, literals: Literals, language: str) -> list[PointText]:
    """What is embedded of a card. Questions are compared with questions, so both sides take the query prompt.

    Args:
        content: what the card says.
        literals: of a solved question, those of the workspace's SQL that it names (see `shapes.shape`).
        language: Snowball's name of the workspace's language.
    """
    if content.family is Family.SOLVED_QUESTION:
        question = nfc(content.question)
        masked = shape(question, literals, language)
        return [PointText("question", question, Role.QUERY), PointText("shape", masked, Role.QUERY)]
    return [PointText("content", f"{nfc(content.subject)}: {nfc(content.detail)}", Role.PASSAGE)]


def question_texts(text: str) -> list[PointText]:
    """What is embedded of a question behind a card."""
    return [PointText("question", nfc(text), Role.QUERY)]


def card_fingerprint(content: CardContent, literals: Literals, language: str) -> str:
    """The hash of what a card's point is made from: texts, filter fields, and the language of the analysis."""
    texts = card_texts(content, literals, language)
    return _fingerprint([[t.name, t.text] for t in texts], card_filters(content), language)


def question_fingerprint(text: str, language: str) -> str:
    """The hash of what a question's point is made from."""
    return _fingerprint([[t.name, t.text] for t in question_texts(text)], {}, language)


def card_filters(content: CardContent) -> dict[str, PayloadValue]:
    """The payload fields that searches filter by; fields without a value are left out."""
    fields: dict[str, PayloadValue] = {
        "family": content.family.value,
        "database": content.database,
        "schema": content.schema,
        "tables": tuple(table.casefold() for table in content.tables),
        "columns": tuple(column.casefold() for column in content.columns),
    }
    return {name: value for name, value in fields.items() if value}


def payload(
    workspace: str, item_id: str, version: int, fingerprint: str, filters: dict[str, PayloadValue]
) -> dict[str, PayloadValue]:
    """The payload of a point: who it is and what filters need, and no text."""
    return {"workspace": workspace, "item": item_id, "version": version, "fingerprint": fingerprint, **filters}


def _fingerprint(texts: list[list[str]], filters: dict[str, PayloadValue], language: str) -> str:
    return digest(json.dumps([texts, sorted(filters.items()), language], ensure_ascii=False))[:32]
