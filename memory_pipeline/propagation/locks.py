"""Who may work on the points of a collection, and who may switch identities: one at a time, across processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from memory_pipeline.cards import Collection
    from memory_pipeline.runtime import Runtime

_WAIT = 60.0  # seconds


def alone(
    runtime: Runtime, workspace: str, collection: Collection, *, identity: str | None = None, wait: float | None = None
) -> AbstractContextManager[bool]:
    """Keep every other projector, and the audit's repair, from the points of a collection.

    Args:
        runtime: the services.
        workspace: whose points.
        collection: which collection.
        identity: the hash of the embedding identity; by default of the configured one.
        wait: seconds to wait for another one; by default a minute.

    Yields:
        whether that is so; false when another one was at work for longer than that.
    """
    name = ("project", workspace, identity or runtime.identity.hash, collection.value)
    return runtime.database.lock(*name, wait=_WAIT if wait is None else wait)


def switching(runtime: Runtime) -> AbstractContextManager[bool]:
    """Keep others from making an identity live, or from dropping one; whether that is so, as for `alone`."""
    return runtime.database.lock("make live", wait=_WAIT)
