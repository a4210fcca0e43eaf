"""What a reviewer has to decide of a session, and which lines of its ledger a decision is. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memory_pipeline.ledger import PHASES, Decision, DecisionType, Entry, excerpt
from memory_pipeline.review import Outcome, Review, review
from memory_pipeline.text import equality_key

_REVIEW_PHASE = PHASES[-1]  # so that reopening an earlier phase opens the review again
REPEATED = 200
"""Characters of a subject that another line repeats, for people; the line that is meant is told by its seq or id."""
_UNKNOWN = "the session has no such decision"
_MARKERS = {
    Outcome.PROMOTED: DecisionType.MEMORY_PROMOTED,
    Outcome.DECLINED: DecisionType.MEMORY_PROMOTION_DECLINED,
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A clarification that nobody has promoted or declined, with those of the same session that say the same.

    Attributes:
        clarification: the first of them.
        seqs: of all that are undecided; whichever is named, all are decided.
        decided: of those that say the same and are decided already, what was decided, by seq.
    """

    clarification: Decision
    seqs: tuple[int, ...]
    decided: Mapping[int, Outcome]


@dataclass(frozen=True, slots=True)
class Retraction:
    """Takes away single decisions, which never return; a marker with its equals."""

    seqs: Collection[int]


@dataclass(frozen=True, slots=True)
class Rollback:
    """Goes back to a phase: takes away every decision of a later one."""

    phase: int


Correction = Retraction | Rollback


@dataclass(frozen=True, slots=True)
class Plan:
    """What a reviewer's wish comes to.

    Attributes:
        entries: the lines that the ledger gets, in this order.
        unchanged: what was asked for and stands there already, by the seq, phase or card that was named.
        refused: what cannot be done, and why, by the same.
    """

    entries: tuple[Entry, ...]
    unchanged: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


def candidates(decisions: Sequence[Decision], view: Review) -> tuple[Candidate, ...]:
    """The candidates of a session in seq order, equal ones once. All of them, however many there are."""
    by_text: dict[str, list[Decision]] = {}
    for decision in decisions:
        if decision.seq in view.outcomes:
            by_text.setdefault(text_key(decision), []).append(decision)
    found = [
        Candidate(
            clarification=waiting[0],
            seqs=tuple(decision.seq for decision in waiting),
            decided={d.seq: view.outcomes[d.seq] for d in equal if view.outcomes[d.seq] in _MARKERS},
        )
        for equal in by_text.values()
        if (waiting := [decision for decision in equal if view.outcomes[decision.seq] is Outcome.CANDIDATE])
    ]
    # The first of equal ones may be decided, and another one stand between it and the first that waits.
    return tuple(sorted(found, key=lambda candidate: candidate.clarification.seq))


def text_key(clarification: Decision) -> str:
    """Equal for clarifications that become one card."""
    return equality_key(clarification.subject, clarification.detail)


def plan_review(decisions: Sequence[Decision], promote: Collection[int], decline: Collection[int], *, by: str) -> Plan:
    """What promoting and declining clarifications comes to; of equal ones, whichever is named stands for all.

    Args:
        decisions: of the session.
        promote: seqs of clarifications that become cards.
        decline: seqs of those that do not.
        by: who decides.
    """
    view = review(decisions)
    known = {decision.seq: decision for decision in decisions}
    waiting = {seq: candidate.seqs for candidate in candidates(decisions, view) for seq in candidate.seqs}
    asked = {Outcome.PROMOTED: set(promote), Outcome.DECLINED: set(decline)}
    wanted = {outcome: {each for seq in seqs for each in waiting.get(seq, ())} for outcome, seqs in asked.items()}
    both = wanted[Outcome.PROMOTED] & wanted[Outcome.DECLINED]
    unchanged, refused = [], {}
    for outcome, seqs in asked.items():
        for seq in sorted(seqs):
            if seq in both:
                refused[f"seq {seq}"] = "it is to be promoted and declined at once: decide for one"
            elif seq not in waiting and (fault := _why_none(seq, outcome, known, view)):
                refused[f"seq {seq}"] = fault
            elif seq not in waiting:
                unchanged.append(f"seq {seq}")
    decided = sorted((seq, outcome) for outcome, seqs in wanted.items() for seq in seqs - both)
    return Plan(tuple(_marker(known[seq], outcome, by) for seq, outcome in decided), tuple(unchanged), refused)


def plan_correction(decisions: Sequence[Decision], correction: Correction, *, by: str, reason: str = "") -> Plan:
    """What taking decisions away comes to.

    Args:
        decisions: of the session.
        correction: what is to be taken away.
        by: who does it.
        reason: why, as it is written into the ledger.
    """
    because = f"{reason} (decided by {by})" if reason else f"decided by {by}"
    view = review(decisions)
    effective = view.effective
    if isinstance(correction, Rollback):
        return _plan_rollback(correction, [d for d in decisions if d.seq in effective], because)
    known = {decision.seq: decision for decision in decisions}
    seqs = sorted({each for seq in correction.seqs for each in _decided_together(seq, known, view)})
    return Plan(
        entries=tuple(
            Entry(
                DecisionType.DECISION_RETRACTED, known[seq].subject[:REPEATED], detail=f"seq:{seq}", rationale=because
            )
            for seq in seqs
            if seq in effective
        ),
        unchanged=tuple(f"seq {seq}" for seq in seqs if seq in known and seq not in effective),
        refused={f"seq {seq}": _UNKNOWN for seq in seqs if seq not in known},
    )


def foreseen(entries: Sequence[Entry], *, after: int, at: datetime) -> tuple[Decision, ...]:
    """The decisions that entries would be, written at a moment behind a seq."""
    return tuple(
        Decision(
            seq=seq,
            ts=at,
            type=entry.type.value,
            subject=entry.subject,
            detail=entry.detail,
            rationale=entry.rationale,
            phase=entry.phase,
            concepts=entry.concepts,
            tables=entry.tables,
        )
        for seq, entry in enumerate(entries, after + 1)
    )


def said_still(gone: Collection[Decision], left: Sequence[Decision]) -> tuple[int, ...]:
    """The seqs of effective clarifications that say the same as some of those that were taken away."""
    view = review(left)
    keys = {text_key(decision) for decision in gone if decision.type == DecisionType.CONCEPT_CLARIFIED}
    return tuple(decision.seq for decision in left if decision.seq in view.outcomes and text_key(decision) in keys)


def taken_away(before: Sequence[Decision], further: Sequence[Decision]) -> tuple[Decision, ...]:
    """The decisions that are effective before further ones, and not after them."""
    gone = review(before).effective - review([*before, *further]).effective
    return tuple(decision for decision in before if decision.seq in gone)


def _plan_rollback(rollback: Rollback, effective: Sequence[Decision], because: str) -> Plan:
    named = f"phase {rollback.phase}"
    if rollback.phase not in PHASES:
        return Plan((), refused={named: f"phases go from {PHASES[0]} to {PHASES[-1]}"})
    if all(decision.phase <= rollback.phase for decision in effective):
        return Plan((), unchanged=(named,))
    reopened = f"phase:{rollback.phase}"
    return Plan((Entry(DecisionType.PHASE_REOPENED, reopened, detail=reopened, rationale=because),))


def _decided_together(seq: int, known: Mapping[int, Decision], view: Review) -> set[int]:
    """A decision; of one that decides about a clarification also those that decide the same about equal ones."""
    targets = [target for target, marker in view.decided_by.items() if marker == seq]
    equal = {(text_key(known[target]), view.outcomes[target]) for target in targets}
    of_equal = (
        marker
        for target, marker in view.decided_by.items()
        if targets and (text_key(known[target]), view.outcomes[target]) in equal
    )
    return {seq, *of_equal}


def _marker(clarification: Decision, outcome: Outcome, by: str) -> Entry:
    return Entry(
        _MARKERS[outcome],
        clarification.subject[:REPEATED],
        detail=f"seq:{clarification.seq}",
        rationale=f"decided by {by}",
        phase=_REVIEW_PHASE,
    )


def _why_none(seq: int, asked: Outcome, known: Mapping[int, Decision], view: Review) -> str | None:
    """Why a seq is not to be decided; None where it is decided so already."""
    found = known.get(seq)
    if found is None:
        return _UNKNOWN
    if found.type != DecisionType.CONCEPT_CLARIFIED:
        return f"it is no clarification but {excerpt(found.type)}"
    if seq not in view.effective:
        return "a later decision took it away"
    outcome = view.outcomes[seq]
    if outcome is Outcome.REFUSED:
        return "it only names a table, which never becomes a card"
    if outcome is asked:
        return None
    return f"it is {outcome.value} already: retract decision {view.decided_by[seq]} first"
