"""Embedding models: turns texts into dense vectors, and says what identifies the vector space.

Importing this package imports no model and none of the libraries that run one.
"""

from memory_pipeline.embedding.base import Embedder, EmbeddingIdentity, Role, Vectors
from memory_pipeline.embedding.model import Model, describe, open_embedder, open_model

__all__ = [
    "Embedder",
    "EmbeddingIdentity",
    "Model",
    "Role",
    "Vectors",
    "describe",
    "open_embedder",
    "open_model",
]
