"""What a session that starts is shown: the cards that recall finds for it, and that it has not decided about."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memory_pipeline.candidates import REPEATED, Plan
from memory_pipeline.cards import Family
from memory_pipeline.ledger import DecisionType, Entry
from memory_pipeline.recall import Recall
from memory_pipeline.recall.request import LIMIT_AT_MOST
from memory_pipeline.review import cited_ids
from memory_pipeline.statements import Reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory_pipeline.cards import CardContent
    from memory_pipeline.recall import RecallHit, RecallResult
    from memory_pipeline.reviewing.state import SessionState
    from memory_pipeline.runtime import Runtime

_TAKEABLE = [family for family in Family if family is not Family.SOLVED_QUESTION]


@dataclass(frozen=True, slots=True)
class Proposal:
    """The cards to show to the reviewer of a session, best first.

    Attributes:
        session_id, question: of the session.
        cards: concepts, rules and pitfalls, each of which may be taken.
        solved_questions: advice: how like questions were answered.
        dropped, pending, degraded: as of any recall, over both.
    """

    session_id: str
    question: str
    cards: tuple[RecallHit, ...]
    solved_questions: tuple[RecallHit, ...]
    dropped: Mapping[str, int]
    pending: int
    degraded: bool

    def as_json(self) -> dict[str, Any]:
        """The proposal as JSON-ready values."""
        return {
            "session_id": self.session_id,
            "question": self.question,
            "cards": [hit.as_json() for hit in self.cards],
            "solved_questions": [hit.as_json() for hit in self.solved_questions],
            "dropped": dict(self.dropped),
            "pending": self.pending,
            "degraded": self.degraded,
        }


@dataclass(frozen=True, slots=True)
class Decided:
    """What a session has decided already, whether the archive has read it or not.

    Attributes:
        taken: the cards that it has clarifications from.
        rejected: the cards that it does not want.
        forms: its clarifications by their form.
        reader: reads the form of others, in the workspace's language.
    """

    taken: frozenset[str]
    rejected: frozenset[str]
    forms: frozenset[str]
    reader: Reader

    @classmethod
    def by(cls, state: SessionState, language: str) -> Decided:
        """What a session has decided."""
        clarified = [decision for decision in state.decisions if decision.seq in state.view.outcomes]
        reader = Reader(language)
        return cls(
            taken=frozenset(card_id for decision in clarified for card_id in cited_ids(decision.rationale)),
            rejected=frozenset(state.view.rejected_cards),
            forms=frozenset(reader.statement(decision.subject, decision.detail).form for decision in clarified),
            reader=reader,
        )

    def holds(self, hit: RecallHit) -> bool:
        """Whether a card needs no proposing any more."""
        return (
            hit.card_id in self.taken | self.rejected
            or self.reader.statement(hit.subject, hit.detail).form in self.forms
        )

    @property
    def most(self) -> int:
        """How many cards it may hold of those that a search finds."""
        return len(self.taken) + len(self.rejected) + len(self.forms)


def proposed(
    runtime: Runtime, workspace: str, state: SessionState, decided: Decided, *, limit: int, degraded: bool
) -> Proposal:
    """Recall over a session's question, without what the session has decided, be it read into the archive or not."""
    recall = Recall(runtime)

    def found(families: Sequence[Family], limit: int) -> RecallResult:
        session_id = state.reading.session_id
        return recall.search(
            workspace, state.question, limit=limit, families=families, session_id=session_id, degraded=degraded
        )

    # The archive may not have read the ledger's last lines, so more is asked for than is shown.
    cards = found(_TAKEABLE, min(limit + decided.most, LIMIT_AT_MOST))
    solved = found([Family.SOLVED_QUESTION], min(limit + len(decided.rejected), LIMIT_AT_MOST))
    left = [hit for hit in cards.hits if not decided.holds(hit)]
    advice = [hit for hit in solved.hits if hit.card_id not in decided.rejected]
    return Proposal(
        session_id=state.reading.session_id,
        question=state.question,
        cards=tuple(left[:limit]),
        solved_questions=tuple(advice[:limit]),
        dropped={
            reason: cards.dropped.get(reason, 0) + solved.dropped.get(reason, 0)
            for reason in sorted({*cards.dropped, *solved.dropped})
        },
        pending=max(cards.pending, solved.pending),
        degraded=cards.degraded or solved.degraded,
    )


def plan_taking(
    cards: Mapping[str, CardContent], take: Collection[str], reject: Collection[str], decided: Decided, *, by: str
) -> Plan:
    """What taking cards over, and not wanting them, comes to; leaving one means only "not now", and is no line.

    Args:
        cards: what those that exist say, by id.
        take: ids of cards that become clarifications of the session's own.
        reject: ids of cards that the session is not to be shown again.
        decided: what it has decided before.
        by: who decides.
    """
    refused = {
        **dict.fromkeys({*take, *reject} - cards.keys(), "no such card in this workspace"),
        **dict.fromkeys({*take} & {*reject}, "it is to be taken and rejected at once: decide for one"),
        **{i: "a solved question is advice, and is not taken" for i in {*take} & cards.keys() if _is_solved(cards[i])},
        **dict.fromkeys({*take} & decided.rejected, "this session has rejected it: retract that decision first"),
        **dict.fromkeys({*reject} & decided.taken, "this session has taken it: retract that decision first"),
    }
    new = [i for i in sorted({*take} - decided.taken) if i not in refused]
    unwanted = [i for i in sorted({*reject} - decided.rejected) if i not in refused]
    return Plan(
        entries=(*(_taken(i, cards[i]) for i in new), *(_rejected(i, cards[i], by) for i in unwanted)),
        unchanged=tuple(i for i in sorted({*take, *reject}) if i not in {*new, *unwanted, *refused}),
        refused=refused,
    )


def _is_solved(card: CardContent) -> bool:
    return card.family is Family.SOLVED_QUESTION


def _taken(card_id: str, card: CardContent) -> Entry:
    return Entry(
        DecisionType.CONCEPT_CLARIFIED,
        subject=card.subject,
        detail=card.detail,
        rationale=f"from {card_id}",
        concepts=card.concepts,
        tables=card.tables,
    )


def _rejected(card_id: str, card: CardContent, by: str) -> Entry:
    subject = (card.subject or card.question)[:REPEATED]
    return Entry(DecisionType.MEMORY_REJECTED, subject, detail=card_id, rationale=f"decided by {by}")
