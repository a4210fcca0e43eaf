"""How far the index is behind the archive: what is pending, since when, why, and what can be done about it now."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory_pipeline.archive import projections

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


def backlog(database: Database, identity: str, workspace: str) -> Backlog:
    """The pending work of a workspace for an embedding identity (its hash), in one transaction that changes nothing.

    After a change of the model everything is pending, also before the new embedding identity is registered.

    Raises:
        UnknownWorkspace, ArchiveUnavailable.
    """
    with database.transaction(workspace) as tx:
        waiting = projections.waiting(tx, identity)
        put_off = projections.pending_reasons(tx, identity) if waiting.pending else []
    reasons = {each.reason: each.points for each in put_off}
    return Backlog(waiting.pending, waiting.due, waiting.oldest, reasons, tuple(put_off))


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
