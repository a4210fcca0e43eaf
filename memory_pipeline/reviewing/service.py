"""What a reviewer does to a session, each as one call: may they, write it into the ledger, and have the rest follow.

The ledger is the one fact. What comes after it, in archive and index, may fail: nothing is lost then and nothing needs
repeating, since the sensors, or the next ingest and projection, do it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from memory_pipeline import ledger
from memory_pipeline.archive import cards, grants, waiting
from memory_pipeline.archive.effects import rehearsed, standing
from memory_pipeline.archive.grants import Principal, Role
from memory_pipeline.archive.status import faults, ledger_counts
from memory_pipeline.candidates import (
    Correction,
    Plan,
    candidates,
    foreseen,
    plan_correction,
    plan_review,
    said_still,
    taken_away,
)
from memory_pipeline.cards import Family
from memory_pipeline.errors import InvalidInput, InvalidReview, MemoryPipelineError, ReviewOvertaken
from memory_pipeline.recall.request import LIMIT_AT_MOST
from memory_pipeline.review import review
from memory_pipeline.reviewing.following import Before, follow
from memory_pipeline.reviewing.outcome import FinalizeOutcome, Followed, Foresight, ReviewOutcome
from memory_pipeline.reviewing.preview import Outline, Preview, outline, preview
from memory_pipeline.reviewing.proposal import Decided, Proposal, plan_taking, proposed
from memory_pipeline.reviewing.state import SessionState, session_directory, session_state
from memory_pipeline.runtime import Runtime
from memory_pipeline.session_view import Memory, as_markdown, memories
from memory_pipeline.settings import load_settings
from memory_pipeline.text import storable_fault

if TYPE_CHECKING:
    from pathlib import Path

    from memory_pipeline.archive.database import Tx
    from memory_pipeline.archive.status import StoredFault
    from memory_pipeline.archive.waiting import WaitingSession
    from memory_pipeline.ledger import Decision
    from memory_pipeline.settings import Settings


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits for a review in a workspace.

    Attributes:
        sessions: those with candidates, as far as the archive has read them.
        unread: how many sessions have changed since they were read.
        faults: the first hundred things of session directories that could not be used.
    """

    sessions: tuple[WaitingSession, ...]
    unread: int
    faults: tuple[StoredFault, ...]

    @property
    def candidates(self) -> int:
        """How many clarifications wait in all."""
        return sum(session.candidates for session in self.sessions)


@dataclass(frozen=True, slots=True)
class SessionView:
    """What a session has decided to remember.

    Attributes:
        session_id, question, status: of the session.
        memories: the approved ones first, then the declined.
        outline: how much there is to decide still.
    """

    session_id: str
    question: str
    status: str
    memories: tuple[Memory, ...]
    outline: Outline

    def as_markdown(self) -> str:
        """The session's memories as text that Markdown shows just as it is."""
        return as_markdown(f"Memories of {self.session_id}", self.memories)


class Reviewing:
    """The review of sessions, on behalf of one principal.

    Looking takes any role in the workspace, deciding a reviewer's or an administrator's; finalizing takes none, as a
    session belongs to whoever may write its directory. All raise UnknownWorkspace, NotPermitted, SessionsUnavailable,
    SessionNotFound, LedgerUnavailable, ArchiveUnavailable and SchemaOutOfDate; nothing was recorded then.

    Use it as a context manager, or close it.

    Args:
        runtime: archive, index and embedder, of which the latter two may be away; they stay open when this is closed.
        principal: who acts; by default whom the settings name.
        reading: the role that looking takes, by default any.
    """

    def __init__(
        self, runtime: Runtime, principal: str | Principal | None = None, *, reading: Role = Role.READER
    ) -> None:
        self._runtime = runtime
        self._reads = reading
        self._owned: Runtime | None = None
        self._who = Principal.of(principal or runtime.settings.acting_principal)

    @property
    def principal(self) -> str:
        """The name of who acts."""
        return self._who.name

    @classmethod
    def from_settings(cls, settings: Settings | None = None, principal: str | None = None) -> Self:
        """The review over the services that the settings name, by default those of the environment.

        Raises:
            InvalidSettings: a setting cannot be used.
        """
        reviewing = cls(Runtime(settings or load_settings(), warm=True), principal)
        reviewing._owned = reviewing._runtime
        return reviewing

    def close(self) -> None:
        """Close what `from_settings` opened."""
        if self._owned:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def require_reviewer(self, workspace: str) -> None:
        """Ask whether the principal may decide; it is asked again when something is decided."""
        with self._allowed(workspace, Role.REVIEWER):
            pass

    def waiting(self, workspace: str) -> Waiting:
        """The sessions with candidates, those that wait longest first, as far as the archive has read them."""
        with self._reading(workspace) as tx:
            found = waiting.sessions_to_review(tx)
            read = ledger_counts(tx)["sessions"]
            unusable = tuple(faults(tx))
        root = self._runtime.settings.sessions
        if not read and root.is_dir() and not (root / workspace).exists():
            return Waiting((), 0, unusable)  # it never had a session; one whose directory is gone is another matter
        changed = waiting.unread(self._runtime.database, self._runtime.settings.sessions, workspace).changed
        return Waiting(tuple(found), changed, unusable)

    def preview(self, workspace: str, session_id: str) -> Preview:
        """Every candidate of a session, from its ledger as it is now; nothing is changed."""
        with self._session(workspace, session_id) as (tx, state):
            return preview(tx, state)

    def view(self, workspace: str, session_id: str) -> SessionView:
        """What a session has decided to remember, made of its ledger as it is now."""
        with self._session(workspace, session_id) as (_, state):
            session = state.reading.session_id, state.question, state.manifest.status.value
            return SessionView(*session, memories(state.decisions), outline(state))

    def propose(self, workspace: str, session_id: str, *, limit: int = 10, degraded: bool = False) -> Proposal:
        """The cards to show to the reviewer of a session that starts, without what it has decided already.

        Args:
            workspace: whose.
            session_id: which session.
            limit: how many cards, and how many solved questions, at most.
            degraded: whether PostgreSQL may answer by words alone, with the index or the model away.

        Raises:
            InvalidInput, IndexUnavailable, EmbedderUnavailable, IndexIncompatible: as `Recall.search`.
        """
        if not 1 <= limit <= LIMIT_AT_MOST:
            raise InvalidInput(f"the limit is {limit}: ask for 1 to {LIMIT_AT_MOST} cards")
        with self._session(workspace, session_id) as (tx, state):
            decided = Decided.by(state, tx.language)
        return proposed(self._runtime, workspace, state, decided, limit=limit, degraded=degraded)

    def record(
        self,
        workspace: str,
        session_id: str,
        *,
        promote: Collection[int] = (),
        decline: Collection[int] = (),
        partial: bool = False,
    ) -> ReviewOutcome:
        """Promote and decline candidates. Doing the same again adds nothing.

        Args:
            workspace: whose.
            session_id: which session.
            promote: seqs of the clarifications that become cards; of equal ones any stands for all.
            decline: seqs of those that do not.
            partial: whether to record the rest where some of it cannot be done, as after a long look at a checklist.

        Raises:
            InvalidReview: something named is no candidate.
        """
        return self._decide(
            workspace,
            session_id,
            lambda _, state: plan_review(state.decisions, promote, decline, by=self.principal),
            partial=partial,
        )

    def foresee(self, workspace: str, session_id: str, correction: Correction) -> Foresight:
        """What a correction would take away, and what that would do to cards; nothing is changed.

        Raises:
            InvalidReview: there is no such decision or phase.
        """
        with self._reading(workspace) as tx:
            # With a last line that a further one ends, as when it is done.
            state = session_state(tx, ledger.read_ended(self._directory(workspace, session_id), workspace))
        plan = plan_correction(state.decisions, correction, by=self.principal)
        if plan.refused:
            raise InvalidReview(plan.refused)
        further = foreseen(plan.entries, after=state.last_seq, at=datetime.now(UTC))
        reading = replace(state.reading, decisions=state.decisions)
        gone, after = taken_away(state.decisions, further), (*state.decisions, *further)
        return Foresight(
            session_id=state.reading.session_id,
            taken_away=gone,
            said_still=said_still(gone, after),
            unchanged=plan.unchanged,
            candidates_left=_candidates_left(after),
            cards=rehearsed(self._runtime.database, reading, workspace, further, principal=self.principal),
            last_seq=state.last_seq,
        )

    def correct(
        self, workspace: str, session_id: str, correction: Correction, *, reason: str = "", after: int | None = None
    ) -> ReviewOutcome:
        """Take decisions away, for good: decide anew what is to count again.

        Args:
            workspace: whose.
            session_id: which session.
            correction: what to take away.
            reason: why, as it is written into the ledger.
            after: the last decision that whoever wants this has seen (`Foresight.last_seq`), so that nothing goes that
                was decided since; by default it does not matter.

        Raises:
            InvalidReview: there is no such decision or phase.
            ReviewOvertaken: the session has gone on since.
            InvalidInput: the reason is no text.
        """
        if fault := storable_fault(reason):
            raise InvalidInput(f"the reason cannot be used: {fault}")

        def planned(_: Tx, state: SessionState) -> Plan:
            plan = plan_correction(state.decisions, correction, by=self.principal, reason=reason)
            if plan.entries and after not in (None, state.last_seq):
                raise ReviewOvertaken(
                    f"{session_id} has gone on since: its last decision is {state.last_seq} and not {after}; look at "
                    "what this would take away now"
                )
            return plan

        return self._decide(workspace, session_id, planned)

    def take(
        self, workspace: str, session_id: str, card_ids: Collection[str], *, reject: Collection[str] = ()
    ) -> ReviewOutcome:
        """Take cards over as clarifications of the session's own, which cite them.

        Promoted in their turn, they are one more source of these cards.

        Args:
            workspace: whose.
            session_id: which session.
            card_ids: of concepts, rules and pitfalls.
            reject: cards that this session is not to be shown again.

        Raises:
            InvalidReview: a card is not there, or is none to be taken.
        """

        def planned(tx: Tx, state: SessionState) -> Plan:
            found = cards.contents(tx, {*card_ids, *reject})
            return plan_taking(found, card_ids, reject, Decided.by(state, tx.language), by=self.principal)

        return self._decide(workspace, session_id, planned)

    def finalize(self, workspace: str, session_id: str) -> FinalizeOutcome:
        """Finalize a session, whatever state the memory is in; then have its solved question follow, if it can.

        Raises:
            SessionsUnavailable, SessionNotFound, LedgerUnavailable: it is not finalized.
        """
        directory = self._directory(workspace, session_id)
        with ledger.open_for_appending(directory, workspace):  # nobody is in the middle of a decision
            changed = ledger.finalize(directory, workspace, by=self.principal)
        followed, solved = self._finalized(workspace, directory)
        return FinalizeOutcome(
            session_id=ledger.session_id(directory),
            changed=changed,
            solved_question=solved,
            unsolved=None if solved else _why_unsolved(directory, workspace, saved=followed.saved),
            followed=followed,
            recover=_recovery(workspace, followed),
        )

    def _finalized(self, workspace: str, directory: Path) -> tuple[Followed, str | None]:
        """What archive and index make of a session that is finalized, and the id of its solved question."""
        session_id, database = ledger.session_id(directory), self._runtime.database
        try:
            with database.transaction(workspace) as tx:
                before = Before.of(tx, session_id)
        except MemoryPipelineError as error:
            return Followed(saved=False, reason=str(error)), None
        followed = follow(self._runtime, workspace, directory, before, principal=self.principal)
        try:
            with database.transaction(workspace) as tx:
                found = standing(tx, session_id).cards.values()
        except MemoryPipelineError:
            return followed, None  # what followed did so all the same
        return followed, next((card.card_id for card in found if card.family is Family.SOLVED_QUESTION), None)

    def _decide(
        self,
        workspace: str,
        session_id: str,
        planned: Callable[[Tx, SessionState], Plan],
        *,
        partial: bool = False,
    ) -> ReviewOutcome:
        """Append what a plan comes to, and have archive and index follow."""
        with self._allowed(workspace, Role.REVIEWER):
            directory = self._directory(workspace, session_id)
        with ledger.open_for_appending(directory, workspace) as writer:
            # What is written is decided on what is there under the lock, by somebody who may still do it.
            with self._allowed(workspace, Role.REVIEWER) as tx:
                state = session_state(tx, writer.read())
                plan = planned(tx, state)
                before = Before.of(tx, state.reading.session_id)
            if plan.refused and not partial:
                raise InvalidReview(plan.refused)
            recorded = writer.append(plan.entries, after=state.last_seq)
        followed = follow(self._runtime, workspace, directory, before, recorded, principal=self.principal)
        return ReviewOutcome(
            session_id=state.reading.session_id,
            recorded=recorded,
            unchanged=plan.unchanged,
            candidates_left=_candidates_left((*state.decisions, *recorded)),
            followed=followed,
            refused=plan.refused,
        )

    def _directory(self, workspace: str, session_id: str) -> Path:
        return session_directory(self._runtime.settings.sessions, workspace, session_id)

    @contextmanager
    def _session(self, workspace: str, session_id: str) -> Iterator[tuple[Tx, SessionState]]:
        with self._reading(workspace) as tx:
            directory = self._directory(workspace, session_id)
            yield tx, session_state(tx, ledger.read_session(directory, workspace))

    def _reading(self, workspace: str) -> AbstractContextManager[Tx]:
        return grants.granted(self._runtime.database, workspace, self._who, self._reads, snapshot=True)

    def _allowed(self, workspace: str, role: Role) -> AbstractContextManager[Tx]:
        return grants.granted(self._runtime.database, workspace, self._who, role)


def _candidates_left(decisions: Sequence[Decision]) -> int:
    return len(candidates(decisions, review(decisions)))


def _why_unsolved(directory: Path, workspace: str, *, saved: bool) -> str:
    reading = ledger.read_session(directory, workspace)
    if not reading.ledger_read:
        return f"{ledger.LEDGER_FILE} is missing or unreadable"
    if review(reading.decisions).approved is None:
        return "its ledger approves no SQL"
    if reading.sql is None:
        return f"SQL was approved, but {ledger.SQL_FILE} is missing, blank or unreadable"
    return "an administrator deleted it" if saved else "the archive has not taken it in yet"


def _recovery(workspace: str, followed: Followed) -> str | None:
    project = f"memory-pipeline project --retry --workspace {workspace}"
    if not followed.saved:
        return f"memory-pipeline ingest --workspace {workspace} && {project}"
    return None if followed.recallable else project
