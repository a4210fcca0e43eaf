"""The index: points and searches, in a Qdrant server or embedded."""

from __future__ import annotations

from pathlib import Path

from memory_pipeline.index.base import (
    CollectionDamaged,
    CollectionMissing,
    Hit,
    Index,
    PayloadValue,
    Point,
    Schema,
    Search,
    SparseVector,
    StoredPoint,
    Target,
)
from memory_pipeline.settings import Settings

__all__ = [
    "CollectionDamaged",
    "CollectionMissing",
    "Hit",
    "Index",
    "PayloadValue",
    "Point",
    "Schema",
    "Search",
    "SparseVector",
    "StoredPoint",
    "Target",
    "index_directory",
    "open_index",
]


def index_directory(settings: Settings) -> Path:
    """Where an embedded index is."""
    return settings.home / "index"


def open_index(settings: Settings, *, warm: bool, patience: float | None = None) -> Index:
    """The index that the settings name; nothing is connected or made until it is used.

    Args:
        settings: with a Qdrant URL the index is that server's, without one it is embedded in the home.
        warm: whether the caller searches often (a service), so that an embedded index keeps a copy open.
        patience: seconds for one request, or for a shard that somebody else has open; by default as usual.
    """
    # The server's client takes half a second to import, which nobody embedded should pay.
    if settings.qdrant_url is None:
        from memory_pipeline.index.edge import EdgeIndex  # noqa: PLC0415  # only the chosen backend is imported

        waiting = {} if patience is None else {"lock_timeout": patience}
        return EdgeIndex(index_directory(settings), warm=warm, **waiting)
    from memory_pipeline.index.server import connect  # noqa: PLC0415  # likewise

    return connect(settings, patience=patience)
