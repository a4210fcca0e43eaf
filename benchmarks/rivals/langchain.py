"""LangChain as a competitor: its indexing API, with a record manager in PostgreSQL and Qdrant's local mode."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from langchain_classic.indexes import SQLRecordManager
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import index
from langchain_qdrant import QdrantVectorStore
from qdrant_client import models

from benchmarks.rivals.base import DIMENSION, LIMIT, Card, Did, Found, Model
from benchmarks.rivals.local_qdrant import COLLECTION, LocalQdrant

_CARD = "metadata.source"  # where a point's payload names its card

# Other hashes make no ids that Qdrant takes.
warnings.filterwarnings("ignore", message="Using SHA-1 for document hashing")


class _Embeddings(Embeddings):
    def __init__(self, model: Model) -> None:
        self._model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._model.embed(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class LangChain:
    """Cards in memory; the run makes documents of them, and calls `index` over all, with `cleanup="full"`.

    Args:
        directory: where the store is.
        records: SQLAlchemy's URL of the database of the record manager.
        model: the first model.
        batch: documents that are hashed, looked up and written at once; by default LangChain's own number.
    """

    name = "LangChain"

    def __init__(self, directory: Path, records: str, model: Model, *, batch: int = 100) -> None:
        self.settings = f"cleanup=full, batch_size={batch}"
        self._batch = batch
        self._cards: dict[str, Card] = {}
        self._records = SQLRecordManager(f"qdrant/{directory}", db_url=records)
        self._records.create_schema()
        self._client = LocalQdrant(directory)
        vectors = models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE)
        self._client.create_collection(COLLECTION, vectors_config=vectors)
        self.change_model(model)

    def save(self, cards: Sequence[Card]) -> None:
        """See `Competitor.save`."""
        self._cards |= {card.card_id: card for card in cards}

    def delete(self, card_ids: Sequence[str]) -> None:
        """See `Competitor.delete`."""
        for card_id in card_ids:
            del self._cards[card_id]

    def run(self) -> Did:
        """See `Competitor.run`."""
        self._client.forget()
        documents = [Document(page_content=c.text, metadata={"source": c.card_id}) for c in self._cards.values()]
        try:
            index(
                documents,
                self._records,
                self._store,
                batch_size=self._batch,
                cleanup="full",
                source_id_key="source",
            )
        except Exception as error:  # noqa: BLE001  # whatever it raises is what it says
            return self._client.did(error)
        return self._client.did()

    def search(self, text: str) -> list[Found]:
        """See `Competitor.search`."""
        return [
            Found(each.metadata["source"], each.page_content) for each in self._store.similarity_search(text, LIMIT)
        ]

    def points(self, card_ids: Sequence[str]) -> int:
        """See `Competitor.points`."""
        return self._client.held(_CARD, card_ids)

    def lose_points(self, card_ids: Sequence[str]) -> None:
        """See `Competitor.lose_points`."""
        self._client.lose(_CARD, card_ids)

    def refuse(self, card_id: str) -> None:
        """See `Competitor.refuse`."""
        self._client.refused = card_id

    def change_model(self, model: Model) -> None:
        """See `Competitor.change_model`."""
        self._store = QdrantVectorStore(self._client, COLLECTION, _Embeddings(model))

    def examine(self) -> int | None:
        """It compares neither store nor records with the documents beyond what a run does."""
        return None

    def mend(self) -> None:
        """It has nothing for it."""

    def close(self) -> None:
        """See `Competitor.close`."""
        self._client.close()
        self._records.engine.dispose()
