"""How far the index is behind the archive: what is pending, since when, why, and what can be done about it now."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory_pipeline.archive import identities, projections
from memory_pipeline.propagation.losses import lost

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from memory_pipeline.archive.database import Database
    from memory_pipeline.archive.projections import PendingReason
    from memory_pipeline.propagation.losses import Presence


@dataclass(frozen=True, slots=True)
class Backlog:
    """The pending work of one workspace.

    Attributes:
        pending: points that do not hold yet what the archive wants, or went with a collection that the index lost.
        due: whether some of them can be tried now; the others wait for their next try.
        oldest: since when the longest waiting one is pending, where that is known.
        reasons: why points are pending, as far as that is known, with how many are.
        put_off: those of the reasons that an attempt or an audit gave, with attempts and next tries.
        lost: the collections that the index does not have any more.
    """

    pending: int = 0
    due: bool = False
    oldest: datetime | None = None
    reasons: Mapping[str, int] = field(default_factory=dict)
    put_off: tuple[PendingReason, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completeness:
    """The pending work of all workspaces against a target.

    Attributes:
        passed: whether nothing is pending for longer than the target, and the index has every collection.
        pending: workspace → pending points, where there are any.
        overdue: the workspaces with work older than the target.
        lost: the workspaces of which the index has lost collections.
        reasons: why attempts failed, with how many points each; "not tried yet" counts the others.
        lag_seconds: the age of the oldest pending work; 0 when there is none.
    """

    passed: bool
    pending: Mapping[str, int]
    overdue: tuple[str, ...]
    lost: tuple[str, ...]
    reasons: Mapping[str, int]
    lag_seconds: float


def backlog(database: Database, configured: str, workspace: str, presence: Presence) -> Backlog:
    """The pending work of a workspace, in one transaction that changes nothing.

    While the embeddings change, the collections that recall uses and those that are filled beside them both count; the
    latter from the moment on that the settings name them.

    Args:
        database: the archive.
        configured: the hash of the settings' embedding identity.
        workspace: which workspace.
        presence: asked for what the index has before the transaction begins.

    Raises:
        UnknownWorkspace, ArchiveUnavailable.
    """
    held = presence.of(workspace)
    with database.transaction(workspace) as tx:
        current = identities.current(tx, configured)
        waiting = [projections.waiting(tx, identity) for identity in current]
        behind = [identity for identity, found in zip(current, waiting, strict=True) if found.pending]
        put_off = [each for identity in behind for each in projections.pending_reasons(tx, identity)]
        gone = [each for identity in current for each in lost(tx, identity, held).items()]
    reasons: Counter[str] = Counter()
    for each in put_off:
        reasons[each.reason] += each.points
    for collection, points in gone:
        reasons[f"the index has lost {collection}"] += points
    return Backlog(
        pending=sum(found.pending for found in waiting) + sum(points for _, points in gone),
        due=bool(gone) or any(found.due for found in waiting),
        oldest=min((found.oldest for found in waiting if found.oldest), default=None),
        reasons=reasons,
        put_off=tuple(put_off),
        lost=tuple(dict.fromkeys(collection.value for collection, _ in gone)),
    )


def completeness(backlogs: Mapping[str, Backlog], *, target: float, now: datetime) -> Completeness:
    """Measure the pending work of all workspaces against a target (pure).

    Args:
        backlogs: workspace → its pending work.
        target: how long work may be pending, in seconds.
        now: the moment to measure at.
    """
    ages = {name: _age(found, now) for name, found in backlogs.items() if found.pending}
    overdue = tuple(name for name, age in ages.items() if age > target)
    robbed = tuple(name for name, found in backlogs.items() if found.lost)
    return Completeness(
        passed=not overdue and not robbed,
        pending={name: backlogs[name].pending for name in ages},
        overdue=overdue,
        lost=robbed,
        reasons=_reasons(backlogs.values()),
        lag_seconds=max(ages.values(), default=0.0),
    )


def _age(found: Backlog, now: datetime) -> float:
    return max(0.0, (now - found.oldest).total_seconds()) if found.oldest else 0.0


def _reasons(backlogs: Iterable[Backlog]) -> dict[str, int]:
    counted: Counter[str] = Counter()
    for found in backlogs:
        counted.update(found.reasons)
        counted["not tried yet"] += found.pending - sum(found.reasons.values())
    return dict(+counted)
