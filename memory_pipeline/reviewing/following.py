"""Has archive and index follow what a ledger has got, in the same call; what fails here is done by the next ingest."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_pipeline import ledger
from memory_pipeline.archive import identities, projections, sessions
from memory_pipeline.archive.effects import Standing, effects, standing
from memory_pipeline.archive.incomplete import points_of
from memory_pipeline.archive.intake import intake_concepts, intake_solved_questions
from memory_pipeline.completion import Completion, complete
from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.reviewing.outcome import Followed
from memory_pipeline.reviewing.state import UNREADABLE

if TYPE_CHECKING:
    from pathlib import Path

    from memory_pipeline.archive.database import Tx
    from memory_pipeline.ledger import Decision, SessionReading
    from memory_pipeline.runtime import Runtime

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Before:
    """The cards that a session stood behind before a change, and the items that recall needed for them."""

    session_id: str
    standing: Standing
    items: frozenset[str]

    @classmethod
    def of(cls, tx: Tx, session_id: str) -> Before:
        """What there is now."""
        found = standing(tx, session_id)
        return cls(session_id, found, frozenset(points_of(tx, found.cards)))


def follow(
    runtime: Runtime,
    workspace: str,
    directory: Path,
    before: Before,
    recorded: Sequence[Decision] = (),
    *,
    principal: str,
) -> Followed:
    """Take a session's ledger into the archive, and bring the points of its cards up to date.

    It never fails, since the ledger stays what it is: whatever went wrong is said, and done by the next ingest.

    Args:
        runtime: archive, index and embedder, of which all may be away.
        workspace: whose session.
        directory: the session's.
        before: what there was before its ledger got something.
        recorded: what it got.
        principal: who decided it.
    """
    try:
        missed = _taken_in(runtime, workspace, directory, recorded, principal)
    except Exception as error:  # noqa: BLE001  # of which the ledger knows nothing either
        return Followed(saved=False, reason=_said(error))
    if missed:
        return Followed(saved=False, reason=missed)
    try:
        return _completed(runtime, workspace, before)
    except Exception as error:  # noqa: BLE001  # nor does what is saved
        return Followed(saved=True, reason=_said(error))


def _taken_in(
    runtime: Runtime, workspace: str, directory: Path, recorded: Sequence[Decision], principal: str
) -> str | None:
    """Bring the archive up to date with a session; why it does not know all of what its directory says, or None."""
    with runtime.database.transaction(workspace, writing=True) as tx:
        identities.register(tx, runtime.identity)
        reading = ledger.read_session(directory, workspace)
        sessions.take_in(tx, reading)
        missed = _not_taken_in(tx, reading, recorded)
    if not missed:
        intake_concepts(runtime.database, workspace, principal=principal)
        intake_solved_questions(runtime.database, workspace, principal=principal)
    return missed


def _completed(runtime: Runtime, workspace: str, before: Before) -> Followed:
    """What happened to the session's cards, once their points are up to date if they can be."""
    with runtime.database.transaction(workspace, snapshot=True) as tx:
        after = standing(tx, before.session_id, before.standing.cards)
        items = {*before.items, *points_of(tx, after.cards)}
        along = projections.made_pending(tx, before.standing.at)
    done = Completion(recallable=True, reason=None)
    if items or along:
        done = complete(runtime, workspace, items, along=along)
    found = effects(before.standing, after)
    return Followed(saved=True, cards=found, recallable=done.recallable, reason=done.reason)


def _said(error: Exception) -> str:
    if isinstance(error, MemoryPipelineError):
        return str(error)
    # Its message may hold what a card says, which belongs into no log.
    where = "".join(traceback.format_tb(error.__traceback__))
    _log.error("what follows a decision failed with %s\n%s", type(error).__name__, where)
    return f"an unexpected {type(error).__name__}"


def _not_taken_in(tx: Tx, reading: SessionReading, recorded: Sequence[Decision]) -> str | None:
    """Why the archive does not know what a session's directory says; None when it does."""
    stored = {decision.seq: decision for decision in sessions.stored_decisions(tx, reading.session_id)}
    begun = bool(stored or recorded) or any(fault.kind in UNREADABLE for fault in reading.faults)
    if reading.manifest is None or (begun and not reading.ledger_read):
        said = [fault.reason for fault in reading.faults if fault.line == 0]
        return "; ".join(said) or f"there is no {ledger.LEDGER_FILE}"
    if any(stored.get(decision.seq) != decision for decision in recorded):
        return f"{ledger.LEDGER_FILE} has lost what was recorded: another program wrote it without its lock"
    return None
