"""What the review answers: what was recorded, what is saved, and whether recall follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory_pipeline.archive.effects import Effect
    from memory_pipeline.ledger import Decision


@dataclass(frozen=True, slots=True)
class Followed:
    """What became of the ledger's decisions in archive and index.

    Attributes:
        saved: whether the archive has taken the ledger in.
        cards: what happened to cards.
        recallable: whether recall answers accordingly, for every card that the session stands behind.
        reason: why not yet; None when it is saved and recallable.
    """

    saved: bool
    cards: tuple[Effect, ...] = ()
    recallable: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ReviewOutcome:
    """What became of a review, a correction, or of cards that were taken. The ledger is the one fact; the rest follows.

    Attributes:
        session_id: which session.
        recorded: the lines that the ledger has got.
        unchanged: what was asked for and stood there already, by the seq or card that was named.
        refused: why some of it was left out; only of a review that was asked to record the rest.
        candidates_left: how many candidates the session still has.
        followed: what the archive and the index make of it.
    """

    session_id: str
    recorded: tuple[Decision, ...]
    unchanged: tuple[str, ...]
    candidates_left: int
    followed: Followed
    refused: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The outcome as JSON-ready values."""
        return {
            "session_id": self.session_id,
            "recorded": [_decision_as_json(decision) for decision in self.recorded],
            "unchanged": list(self.unchanged),
            "refused": dict(self.refused),
            "candidates_left": self.candidates_left,
            **_followed_as_json(self.followed),
        }


@dataclass(frozen=True, slots=True)
class Foresight:
    """What a correction would do; nothing is done yet.

    Attributes:
        session_id: which session.
        taken_away: the decisions that would count no more.
        said_still: the seqs of clarifications that say the same as some of these, and would stay.
        unchanged: what was taken away before, by what was named.
        candidates_left: how many candidates the session would have.
        cards: what would happen to cards.
        last_seq: the last decision that was looked at.
    """

    session_id: str
    taken_away: tuple[Decision, ...]
    said_still: tuple[int, ...]
    unchanged: tuple[str, ...]
    candidates_left: int
    cards: tuple[Effect, ...]
    last_seq: int

    def as_json(self) -> dict[str, Any]:
        """The foresight as JSON-ready values."""
        return {
            "session_id": self.session_id,
            "taken_away": [_decision_as_json(decision) for decision in self.taken_away],
            "said_still": list(self.said_still),
            "unchanged": list(self.unchanged),
            "candidates_left": self.candidates_left,
            "cards": [asdict(effect) for effect in self.cards],
            "last_seq": self.last_seq,
        }


@dataclass(frozen=True, slots=True)
class FinalizeOutcome:
    """What became of a session that was finalized.

    Attributes:
        session_id: which session. It is finalized, whatever is said below.
        changed: whether it was not before.
        solved_question: the id of its card; None where there is none (yet).
        unsolved: why it makes no solved question; None where it does.
        followed: what the archive and the index make of it.
        recover: the command that completes what is not saved or not recallable; None where nothing is left.
    """

    session_id: str
    changed: bool
    solved_question: str | None
    unsolved: str | None
    followed: Followed
    recover: str | None

    def as_json(self) -> dict[str, Any]:
        """The outcome as JSON-ready values."""
        return {
            "session_id": self.session_id,
            "finalized": True,
            "changed": self.changed,
            "solved_question": self.solved_question,
            "unsolved": self.unsolved,
            **_followed_as_json(self.followed),
            "recover": self.recover,
        }


def _followed_as_json(followed: Followed) -> dict[str, Any]:
    """What archive and index make of it, as JSON-ready values."""
    return {
        "saved": followed.saved,
        "cards": [asdict(effect) for effect in followed.cards],
        "recallable": followed.recallable,
        "reason": followed.reason,
    }


def _decision_as_json(decision: Decision) -> dict[str, Any]:
    return {name: getattr(decision, name) for name in ("seq", "type", "subject", "detail")}
