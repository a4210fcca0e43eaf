"""Lets the archive keep how much is pending when a projection begins and when it ends."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from memory_pipeline.archive import history
from memory_pipeline.errors import EmbedderUnavailable, IndexIncompatible, IndexUnavailable

if TYPE_CHECKING:
    from memory_pipeline.runtime import Runtime

_SEEN_THROUGH = (EmbedderUnavailable, IndexIncompatible, IndexUnavailable)


class Sampling:
    """The samples around one projection, for the length of a block. One that finds nothing to do takes none.

    Args:
        runtime: archive and embedding identity.
        workspace: which workspace is projected.
    """

    def __init__(self, runtime: Runtime, workspace: str) -> None:
        self._runtime = runtime
        self._workspace = workspace
        self._begun = False

    def begin(self, pending: int) -> None:
        """Take the first sample, unless it is taken or no point that is to be projected is pending.

        Raises:
            UnknownWorkspace, ArchiveUnavailable.
        """
        if pending and not self._begun:
            self._begun = True
            self._sample()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        # Whoever is interrupted, or has no archive any more, does not wait for one more statement.
        if self._begun and (kind is None or issubclass(kind, _SEEN_THROUGH)):
            self._sample()

    def _sample(self) -> None:
        with self._runtime.database.transaction(self._workspace) as tx:
            history.sample(tx, self._runtime.identity.hash)
