"""How far the index is behind the archive: what is pending, since when, why, and what can be done about it now."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory_pipeline.archive import identities, projections

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from memory_pipeline.archive.database import Database
    from memory_pipeline.archive.projections import PendingReason


@dataclass(frozen=True, slots=True)
class Backlog:
    """The pending work of one workspace.

    Attributes:
        pending: points that do not hold yet what the archive wants.
        due: whether some of them can be tried now; the others wait for their next try.
        oldest: since when the longest waiting one is pending.
        reasons: why attempts failed, with how many points each.
        put_off: the same reasons with attempts and next tries.
    """

    pending: int = 0
    due: bool = False
    oldest: datetime | None = None
    reasons: Mapping[str, int] = field(default_factory=dict)
    put_off: tuple[PendingReason, ...] = ()


@dataclass(frozen=True, slots=True)
class Completeness:
    """The pending work of all workspaces against a target.

    Attributes:
        passed: whether nothing is pending for longer than the target.
        pending: workspace → pending points, where there are any.
        overdue: the workspaces with work older than the target.
        reasons: why attempts failed, with how many points each; "not tried yet" counts the others.
        lag_seconds: the age of the oldest pending work; 0 when there is none.
    """

    passed: bool
    pending: Mapping[str, int]
    overdue: tuple[str, ...]
    reasons: Mapping[str, int]
    lag_seconds: float


def backlog(database: Database, configured: str, workspace: str) -> Backlog:
    """The pending work of a workspace, in one transaction that changes nothing.

    `configured` is the hash of the settings' embedding identity.

    While the embeddings change, the collections that recall uses and those that are filled beside them both count; the
    latter from the moment on that the settings name them.

    Raises:
        UnknownWorkspace, ArchiveUnavailable.
    """
    with database.transaction(workspace) as tx:
        current = identities.current(tx, configured)
        waiting = [projections.waiting(tx, identity) for identity in current]
        behind = [identity for identity, found in zip(current, waiting, strict=True) if found.pending]
        put_off = [each for identity in behind for each in projections.pending_reasons(tx, identity)]
    reasons: Counter[str] = Counter()
    for each in put_off:
        reasons[each.reason] += each.points
    return Backlog(
        pending=sum(found.pending for found in waiting),
        due=any(found.due for found in waiting),
        oldest=min((found.oldest for found in waiting if found.oldest), default=None),
        reasons=reasons,
        put_off=tuple(put_off),
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
    return Completeness(
        passed=not overdue,
        pending={name: backlogs[name].pending for name in ages},
        overdue=overdue,
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
