"""The store of both peers: the local mode of `qdrant-client`, which counts writes and can be told to refuse one."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from httpx import Headers
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from benchmarks.rivals.base import Did, batched

COLLECTION = "cards"
warnings.filterwarnings("ignore", message="Payload indexes have no effect in the local Qdrant")


class LocalQdrant(QdrantClient):
    """A store in a directory, or in memory. One refused point fails all of its request, as a server has it.

    Args:
        directory: where it keeps its points; None for memory alone.
    """

    def __init__(self, directory: Path | None) -> None:
        super().__init__(**({"location": ":memory:"} if directory is None else {"path": str(directory)}))
        self.refused = ""
        """The card whose point is refused, as the payload names it."""
        self.forget()

    def upsert(self, collection_name: str, points: Any, **settings: Any) -> Any:
        """See `QdrantClient.upsert`."""
        self._take(points)
        return super().upsert(collection_name, points, **settings)

    def upload_points(
        self, collection_name: str, points: Iterable[models.PointStruct], batch_size: int = 64, **settings: Any
    ) -> None:
        """See `QdrantClient.upload_points`: a request for each batch."""
        for batch in batched(points, batch_size):
            self._take(batch)
            super().upload_points(collection_name, batch, batch_size, **settings)

    def delete(self, collection_name: str, points_selector: Any, **settings: Any) -> Any:
        """See `QdrantClient.delete`."""
        self._removed += len(points_selector) if isinstance(points_selector, list) else 1
        return super().delete(collection_name, points_selector, **settings)

    def forget(self) -> None:
        """Begin to count anew."""
        self._written = self._removed = 0

    def did(self, error: Exception | None = None) -> Did:
        """What it was asked for since, by a run that ended so."""
        return Did(self._written, self._removed, error=str(error) if error else "")

    def held(self, field: str, values: Sequence[str]) -> int:
        """How many points there are whose payload names one of some values."""
        return self.count(COLLECTION, _naming(field, values)).count

    def lose(self, field: str, values: Sequence[str]) -> None:
        """Delete the points whose payload names one of some values, uncounted."""
        super().delete(COLLECTION, _naming(field, values))

    def _take(self, points: Sequence[models.PointStruct]) -> None:
        if self.refused and any(repr(self.refused) in str(point.payload) for point in points):
            raise UnexpectedResponse(400, "Bad Request", b"a point of this request is refused", Headers())
        self._written += len(points)


def _naming(field: str, values: Sequence[str]) -> models.Filter:
    return models.Filter(must=[models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))])
