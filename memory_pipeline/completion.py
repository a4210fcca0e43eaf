"""Completes a change in the same call that made it: brings its points up to date, and says whether recall follows."""

from __future__ import annotations

from collections.abc import Collection as Items
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_pipeline.archive import identities
from memory_pipeline.archive.incomplete import incomplete
from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.propagation import project

if TYPE_CHECKING:
    from memory_pipeline.runtime import Runtime

_PROJECTOR_WAIT = 2.0  # seconds; whoever keeps another projector waiting takes the change along
_NOT_ASKED = "it was saved without propagating it: the next projection does"
_BUSY = "another process is projecting this workspace, and takes it along"


@dataclass(frozen=True, slots=True)
class Completion:
    """Whether recall answers accordingly, and why not yet.

    Attributes:
        recallable: whether it does.
        reason: why not; None when it does.
        under_way: whether somebody is at it already.
    """

    recallable: bool
    reason: str | None
    under_way: bool = False


def complete(
    runtime: Runtime, workspace: str, items: Items[str], *, along: Items[str] = (), propagate: bool = True
) -> Completion:
    """Bring the points of a change up to date, if it can be, without a model's work on the rest of the backlog.

    Changes that are completed at once share batches: each takes along those of the others whose vectors are made.
    It never fails: what was saved is saved, and what stays pending is done by the next projection.

    Args:
        runtime: archive, index and embedder, of which all may be away.
        workspace: whose change.
        items: the cards and questions that recall has to follow for.
        along: others that the change made pending; they are brought up to date too, and not asked for.
        propagate: whether to do it now.
    """
    trouble = _propagated(runtime, workspace, {*items, *along}) if propagate else _NOT_ASKED
    try:
        with runtime.database.transaction(workspace) as tx:
            left = incomplete(tx, [identities.serving(tx, runtime.identity.hash)], items)
    except MemoryPipelineError as error:  # it is saved all the same
        return Completion(recallable=False, reason=str(error))
    reasons = [trouble, *(item.reason for item in left)]
    reason = next((each for each in reasons if each), _BUSY) if left else None
    return Completion(recallable=not left, reason=reason, under_way=reason == _BUSY)


def _propagated(runtime: Runtime, workspace: str, items: Items[str]) -> str | None:
    """Bring the items' points up to date; why that was not possible, or None."""
    try:
        with runtime.database.transaction(workspace) as tx:
            left = incomplete(tx, identities.current(tx, runtime.identity.hash), items)
        collections = sorted({point.collection for point in left})
        report = project(runtime, workspace, collections, retry_now=True, items=items, wait=_PROJECTOR_WAIT)
    except MemoryPipelineError as error:
        return str(error)
    return _BUSY if report.busy else None
