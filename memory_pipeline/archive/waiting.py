"""What waits for somebody: sessions to be read, lines to be ended, candidates to be reviewed, edits to be applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_pipeline.archive.queries import load
from memory_pipeline.archive.sessions import pending_changes
from memory_pipeline.ledger import FaultKind

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    import pandas as pd

    from memory_pipeline.archive.database import Database, Tx

_SQL = load("waiting")


@dataclass(frozen=True, slots=True)
class Unread:
    """The sessions of a workspace that differ from what the archive has read.

    Attributes:
        changed: new or changed, or read within the same tick of the file system's clock as their last change.
        gone: their directory disappeared since.
        unreadable: could not be read the last time. Nothing tells when they can, so they always count as different.
    """

    changed: int = 0
    gone: int = 0
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A clarification that nobody has promoted or declined yet."""

    session_id: str
    seq: int
    subject: str


@dataclass(frozen=True, slots=True)
class WaitingSession:
    """A session of which some clarifications are neither promoted nor declined, as far as the archive has read it.

    Attributes:
        session_id, question, status: of the session.
        candidates: how many clarifications wait.
        since: when the first of them was made.
    """

    session_id: str
    question: str
    status: str
    candidates: int
    since: datetime


def unread(database: Database, root: Path, workspace: str) -> Unread:
    """What a synchronization of the workspace would read now, and why; only names and times of files are looked at.

    Raises:
        UnknownWorkspace, SessionsUnavailable, ArchiveUnavailable.
    """
    found = pending_changes(database, root, workspace)
    if not found:
        return Unread()
    with database.transaction(workspace) as tx:
        rows = tx.rows(_SQL["unreadable_sessions"], kind=FaultKind.UNREADABLE.value)
    unreadable = {row["session_id"] for row in rows} & set(found.read)
    return Unread(len(found.read) - len(unreadable), len(found.gone), len(unreadable))


def waiting_sessions(tx: Tx) -> list[str]:
    """The sessions whose last line is still being written."""
    return [row["session_id"] for row in tx.rows(_SQL["waiting_sessions"])]


def waiting_edits(database: Database, workspace: str) -> int:
    """How many submitted edits are not applied yet."""
    with database.transaction(workspace) as tx:
        return count_waiting_edits(tx)


def count_waiting_edits(tx: Tx) -> int:
    """How many submitted edits of the transaction's workspace are not applied yet."""
    return int(tx.row(_SQL["waiting_edits"])["edits"])


def candidates(tx: Tx, limit: int) -> tuple[int, list[Candidate]]:
    """How many clarifications wait for a review, and the oldest of them."""
    rows = tx.rows(_SQL["candidates"], limit=limit)
    total = rows[0]["total"] if rows else 0
    return total, [Candidate(row["session_id"], row["seq"], row["subject"]) for row in rows]


def sessions_to_review(tx: Tx) -> list[WaitingSession]:
    """The sessions with candidates, those that wait longest first."""
    return [WaitingSession(**row) for row in tx.rows(_SQL["sessions_to_review"])]


def decision_counts(tx: Tx) -> pd.DataFrame:
    """The workspace's decisions counted by type (index) and by what became of them (columns)."""
    import pandas as pd  # noqa: PLC0415  # comes with the extra, and costs half a second

    rows = [dict(row) for row in tx.rows(_SQL["decision_counts"])]
    columns = ["type", "decisions", "effective", "promoted", "declined", "candidates", "refused"]
    return pd.DataFrame(rows, columns=columns).set_index("type")
