"""LlamaIndex as a competitor: its ingestion pipeline, with a docstore and Qdrant's local mode."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core import Document
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import VectorStoreQuery
from llama_index.vector_stores.qdrant import QdrantVectorStore
from pydantic import PrivateAttr

from benchmarks.rivals.base import LIMIT, Card, Did, Found, Model
from benchmarks.rivals.local_qdrant import COLLECTION, LocalQdrant

_CARD = "doc_id"  # where a point's payload names its card


class _Embedding(BaseEmbedding):
    _model: Model = PrivateAttr()

    def __init__(self, model: Model, **settings: Any) -> None:
        super().__init__(model_name=model.name, **settings)
        self._model = model

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._model.embed(texts).tolist()

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class LlamaIndex:
    """Cards in memory; the run makes documents of them, and calls `IngestionPipeline.run` over all.

    The strategy is the one that also deletes, which the default, upserts alone, does not. A card is one chunk, which
    the default splitter makes.

    Args:
        directory: where the store and the docstore are; None for memory alone, the pipeline's cache included. Where
            they are kept, the docstore is written out after each run, and that cache, of little use, is off.
        model: the first model.
        batch: texts that are embedded and points that are written at once; None for the two numbers that are default.
    """

    def __init__(self, directory: Path | None, model: Model, *, batch: int | None = None) -> None:
        self.name = "LlamaIndex, kept" if directory else "LlamaIndex, in memory"
        self.settings = f"upserts_and_delete, batches of {batch or '10 and 64'}"
        self._kept_in = directory / "docstore.json" if directory else None
        self._embedding: dict[str, Any] = {"embed_batch_size": batch} if batch else {}
        self._cards: dict[str, Card] = {}
        self._client = LocalQdrant(directory / "qdrant" if directory else None)
        self._store = QdrantVectorStore(COLLECTION, self._client, **({"batch_size": batch} if batch else {}))
        self._docstore = SimpleDocumentStore()
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
        documents = [Document(id_=card.card_id, text=card.text) for card in self._cards.values()]
        try:
            self._pipeline.run(documents=documents)
            if self._kept_in:
                self._docstore.persist(str(self._kept_in))
        except Exception as error:  # noqa: BLE001  # whatever it raises is what it says
            return self._client.did(error)
        return self._client.did()

    def search(self, text: str) -> list[Found]:
        """See `Competitor.search`."""
        vector = self._model.get_query_embedding(text)
        found = self._store.query(VectorStoreQuery(query_embedding=vector, similarity_top_k=LIMIT))
        return [Found(node.ref_doc_id, node.get_content()) for node in found.nodes]

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
        self._model = _Embedding(model, **self._embedding)
        self._pipeline = IngestionPipeline(
            transformations=[SentenceSplitter(), self._model],
            vector_store=self._store,
            docstore=self._docstore,
            docstore_strategy=DocstoreStrategy.UPSERTS_AND_DELETE,
            disable_cache=self._kept_in is not None,
        )

    def examine(self) -> int | None:
        """It compares neither store nor docstore with the documents beyond what a run does."""
        return None

    def mend(self) -> None:
        """It has nothing for it."""

    def close(self) -> None:
        """See `Competitor.close`."""
        self._client.close()
