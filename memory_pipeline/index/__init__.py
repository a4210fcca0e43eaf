"""The index: points and searches, in a Qdrant server or embedded."""

from __future__ import annotations

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
    "open_index",
]


def open_index(settings: Settings, *, warm: bool) -> Index:
    """The index that the settings name; nothing is connected or made until it is used.

    Args:
        settings: with a Qdrant URL the index is that server's, without one it is embedded in the home.
        warm: whether the caller searches often (a service), so that an embedded index keeps a copy open.
    """
    # The server's client takes half a second to import, which nobody embedded should pay.
    if settings.qdrant_url is None:
        from memory_pipeline.index.edge import EdgeIndex  # noqa: PLC0415  # only the chosen backend is imported

        return EdgeIndex(settings.home / "index", warm=warm)
    from memory_pipeline.index.server import connect  # noqa: PLC0415  # likewise

    return connect(settings)
