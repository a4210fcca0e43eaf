"""What the assets share: the partitions, how errors are shown, and how a report becomes metadata."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dagster import (
    Backoff,
    DynamicPartitionsDefinition,
    Failure,
    MaterializeResult,
    MetadataValue,
    RetryPolicy,
)

from memory_pipeline.errors import (
    ArchiveUnavailable,
    EmbedderUnavailable,
    IndexUnavailable,
    MemoryPipelineError,
)

if TYPE_CHECKING:
    import pandas as pd

PARTITIONS = "workspace"
WORKSPACES = DynamicPartitionsDefinition(name=PARTITIONS)
OWNERS = ["team:memory"]

RETRIES = RetryPolicy(max_retries=2, delay=5, backoff=Backoff.EXPONENTIAL)
"""For a service that restarts. What lasts longer is left to the sensors, which back off for minutes."""

_TRANSIENT = (ArchiveUnavailable, EmbedderUnavailable, IndexUnavailable)


@contextmanager
def translated() -> Iterator[None]:
    """Show an error of the library as its message, without a traceback, and retry only what may pass by itself."""
    try:
        yield
    except MemoryPipelineError as error:
        raise Failure(str(error), allow_retries=isinstance(error, _TRANSIENT)) from None


class Stopwatch:
    """Measures the seconds that an asset takes."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def result(
        self, numbers: Mapping[str, int | float], table: "pd.DataFrame | None" = None
    ) -> "MaterializeResult[Any]":
        """A materialization whose numbers Dagster plots over time, with the seconds it took."""
        metadata: dict[str, Any] = {**numbers, "seconds": round(time.monotonic() - self._start, 3)}
        if table is not None:
            metadata["table"] = as_markdown(table)
        return MaterializeResult(metadata=metadata)


def as_markdown(table: "pd.DataFrame") -> MetadataValue:
    """A frame as a table in the UI."""
    return MetadataValue.md(table.to_markdown())
