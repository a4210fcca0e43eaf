"""A workspace at a glance: its state, its last audit, how its backlog went, and who waits for a review."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from memory_pipeline.archive import audits
from memory_pipeline.archive.history import history, now
from memory_pipeline.archive.status import workspace_status
from memory_pipeline.archive.waiting import sessions_to_review
from memory_pipeline.errors import InvalidInput

if TYPE_CHECKING:
    from memory_pipeline.archive.audits import LastAudit
    from memory_pipeline.archive.database import Tx
    from memory_pipeline.archive.history import Moment
    from memory_pipeline.archive.status import WorkspaceStatus
    from memory_pipeline.archive.waiting import WaitingSession

_BUCKETS = 96  # of a day, quarters of an hour
_HOURS_AT_MOST = 30 * 24  # older samples are not kept


@dataclass(frozen=True, slots=True)
class Overview:
    """A workspace at a glance, all of it at one moment.

    Attributes:
        status: the archive's own account of it.
        last_audit: what the last audit of all collections found; None where there was none.
        history: how much was pending in each stretch of the time asked for, of equal length, up to this moment.
        to_review: the sessions with clarifications that nobody has promoted or declined, longest waiting first.
    """

    status: WorkspaceStatus
    last_audit: LastAudit | None
    history: tuple[Moment, ...]
    to_review: tuple[WaitingSession, ...]

    def as_json(self) -> dict[str, Any]:
        """The overview as JSON-ready values."""
        return {
            "status": self.status.as_json(),
            "last_audit": self.last_audit.as_json() if self.last_audit else None,
            "history": [each.as_json() for each in self.history],
            "to_review": [{**asdict(each), "since": each.since.isoformat()} for each in self.to_review],
        }


def overview(tx: Tx, configured: str, *, hours: float) -> Overview:
    """The transaction's workspace at a glance.

    Args:
        tx: a transaction opened with `snapshot=True`, so that all parts are of one moment.
        configured: the hash of the settings' embedding identity.
        hours: how far back the history goes, up to 720.

    Raises:
        InvalidInput: there is no history of so many hours.
    """
    if not 0 < hours <= _HOURS_AT_MOST:
        raise InvalidInput(f"the history of {hours} hours was asked for: ask for up to {_HOURS_AT_MOST}")
    until = now(tx)
    return Overview(
        status=workspace_status(tx, configured),
        last_audit=audits.last(tx),
        history=history(tx, configured, since=until - timedelta(hours=hours), until=until, buckets=_BUCKETS),
        to_review=tuple(sessions_to_review(tx)),
    )
