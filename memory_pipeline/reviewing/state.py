"""A session as it stands: its directory as it is now, and what the archive has read of it before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memory_pipeline import ledger
from memory_pipeline.archive import sessions
from memory_pipeline.errors import LedgerUnavailable, SessionNotFound
from memory_pipeline.ledger import FaultKind
from memory_pipeline.review import Review, review
from memory_pipeline.text import nfc

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Tx
    from memory_pipeline.ledger import Decision, Manifest, SessionReading

UNREADABLE = frozenset({FaultKind.UNREADABLE, FaultKind.TOO_LARGE})
"""Faults of a file that is there."""


@dataclass(frozen=True, slots=True)
class SessionState:
    """What a session has decided, as the archive will see it once it has read the ledger.

    Attributes:
        reading: of its directory; the decisions are the ones below.
        manifest: what it says about itself.
        decisions: those of the ledger, and those that the ledger has lost or changed since they were read.
        view: what they amount to.
    """

    reading: SessionReading
    manifest: Manifest
    decisions: tuple[Decision, ...]
    view: Review

    @property
    def question(self) -> str:
        """What the session asks: the last effective rewriting, else the manifest's."""
        return self.view.question or self.manifest.question

    @property
    def last_seq(self) -> int:
        """The largest seq that is taken."""
        return self.decisions[-1].seq if self.decisions else 0


def session_directory(root: Path, workspace: str, session_id: str) -> Path:
    """Where a session is. It is looked for among the sessions that there are, so that no id leads out of the workspace.

    Raises:
        UnknownWorkspace, SessionsUnavailable: the workspace has no directory that can be read.
        SessionNotFound: it has no such session.
    """
    found = ledger.sessions_by_id(root, workspace)
    if session_id in found:
        return Path(found[session_id])
    # A file system may hand names back decomposed (NFD) that were written composed.
    alike = [directory for name, directory in found.items() if nfc(name) == nfc(session_id)]
    if len(alike) == 1:
        return Path(alike[0])
    raise SessionNotFound(
        f"workspace {workspace!r} has no session {session_id[:80]!r}: name one of its directories, or check "
        "MEMORY_SESSIONS_ROOT"
    )


def session_state(tx: Tx, reading: SessionReading) -> SessionState:
    """What a session has decided, by its directory and by what the archive has read of it before.

    Raises:
        SessionNotFound: its manifest cannot be used.
        LedgerUnavailable: its ledger cannot be read, or is gone.
    """
    if reading.manifest is None:
        why = "; ".join(fault.reason for fault in reading.faults if fault.line == 0)
        raise SessionNotFound(f"session {reading.session_id!r} cannot be used as it stands: {why}")
    stored = sessions.stored_decisions(tx, reading.session_id)
    if not reading.ledger_read:
        unreadable = [fault.reason for fault in reading.faults if fault.kind in UNREADABLE]
        if unreadable or stored:
            why = "; ".join(unreadable) or f"{ledger.LEDGER_FILE} is gone: restore it"
            raise LedgerUnavailable(f"session {reading.session_id!r}: {why}")
    decisions = tuple(sessions.merged(stored, reading)[0])
    return SessionState(reading, reading.manifest, decisions, review(decisions))
