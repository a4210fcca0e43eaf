"""What the last audit of each workspace found, carried from one result to the next (pure).

An audit reads every point of a workspace, so that a run audits its own and repeats what is known of the others: a
difference that was found stands until an audit of that workspace finds it no more, whoever makes it. The archive keeps
the counts of the last one; its examples, and why one could not be made, are in the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memory_pipeline.propagation.differences import AuditReport, Difference

if TYPE_CHECKING:
    from memory_pipeline.archive.audits import LastAudit

_LISTED = 10  # differing points of a workspace that are named


@dataclass(frozen=True, slots=True)
class Audited:
    """The last audit of one workspace, in values that JSON knows.

    Attributes:
        at: when it was made, ISO 8601 in UTC, always with milliseconds.
        checked: how many certified points it looked for.
        counts: how many points differ, by `Difference`.
        look_at: some of them, as `AuditReport.look_at` names them.
        failed: why it could not be made; "" when it was.
    """

    at: str
    checked: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    look_at: Sequence[Mapping[str, str]] = field(default_factory=list)
    failed: str = ""

    @property
    def differing(self) -> int:
        """How many points differ."""
        return sum(self.counts.values())


def audited(report: AuditReport, at: datetime) -> Audited:
    """What is kept of an audit."""
    return Audited(_moment(at), report.checked, report.counts, report.look_at(_LISTED))


def recorded(last: LastAudit) -> Audited:
    """What the archive keeps of an audit; of one that repaired, what it mended is no difference any more."""
    mended = {each.value for each in Difference if each.mendable} if last.repaired else set()
    left = {kind: points for kind, points in last.differing.items() if kind not in mended}
    return Audited(_moment(last.at.astimezone(UTC)), last.checked, left)


def not_audited(reason: str, at: datetime) -> Audited:
    """What is kept of an audit that could not be made."""
    return Audited(_moment(at), failed=reason)


def as_json(standing: Mapping[str, Audited]) -> dict[str, Any]:
    """The audits by workspace, for `from_json`."""
    return {name: asdict(last) for name, last in standing.items()}


def from_json(value: Mapping[str, Any]) -> dict[str, Audited]:
    """The audits by workspace that `as_json` wrote."""
    return {name: Audited(**last) for name, last in value.items()}


def newest(standings: Iterable[Mapping[str, Audited]]) -> dict[str, Audited]:
    """Of each workspace the newest audit.

    Args:
        standings: several, in any order: of two runs at once, neither repeats what the other one found. Of the same
            audit the first counts.
    """
    found: dict[str, Audited] = {}
    for standing in standings:
        for name, last in standing.items():
            if name not in found or last.at > found[name].at:
                found[name] = last
    return found


def _moment(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")
