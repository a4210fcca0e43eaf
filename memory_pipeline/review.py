"""Says what a session's decisions amount to: what is effective, promoted, declined, and still a candidate. Pure.

The effective view is one pass in seq order. A retraction or a reopened phase takes away earlier decisions, and what is
taken away never returns, even when the line that took it away is itself taken away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from memory_pipeline.ledger import PHASES, Decision, DecisionType, Fault, FaultKind, excerpt
from memory_pipeline.text import bare

# Eighteen digits are more than any seq has; thousands of them would be an error of their own to convert.
_REFERENCE = re.compile(r"\s*(seq|phase):([0-9]{1,18})\s*")
_TABLE_NAME = re.compile(r"\[?(?:fact|dim)_\w*\]?", re.IGNORECASE)  # some dialects quote names with brackets
_CARD_ID = re.compile(r"(?:mem|sq)-[0-9]+")
_CITED = re.compile(r"(?<![\w-])(?:mem|sq)-[0-9]+(?!-?\w)", re.IGNORECASE)
_DECIDING = frozenset({DecisionType.MEMORY_PROMOTED, DecisionType.MEMORY_PROMOTION_DECLINED})


class Outcome(StrEnum):
    """What became of an effective clarification."""

    PROMOTED = "promoted"
    """It becomes a card."""

    DECLINED = "declined"
    """It is no card, and is not proposed again."""

    CANDIDATE = "candidate"
    """Nobody has decided yet."""

    REFUSED = "refused"
    """It can never be a card, because it only names a table; a promotion of it is a fault."""


@dataclass(frozen=True, slots=True)
class Review:
    """What a session's decisions amount to.

    Attributes:
        effective: the seqs that no later decision took away.
        outcomes: by the seq of each effective clarification, in seq order.
        decided_by: by the seq of a promoted, declined or refused clarification, the seq of the marker that decides.
        question: the last effective rewriting of the question, if any.
        approved: the seq of the last effective approval of SQL, if any.
        context: the effective clarifications, a `subject: detail` line for each.
        rejected_cards: ids of the cards that this session was offered and does not want, once each.
        faults: references that point nowhere, and promotions of what never becomes a card, by line.
    """

    effective: frozenset[int]
    outcomes: Mapping[int, Outcome]
    decided_by: Mapping[int, int]
    question: str | None
    approved: int | None
    context: str
    rejected_cards: tuple[str, ...]
    faults: tuple[Fault, ...]

    def seqs(self, outcome: Outcome) -> tuple[int, ...]:
        """The seqs of the clarifications that came out so, in seq order."""
        return tuple(seq for seq, found in self.outcomes.items() if found is outcome)


def review(decisions: Sequence[Decision]) -> Review:
    """Reviews the decisions of one session, in linear time. Each seq stands once, as a reading guarantees.

    A reference has to point to an earlier decision: nobody can have meant what was not written yet. A fault of a
    decision that was itself taken away is no fault any more, which is how an append-only ledger is mended.
    """
    ordered = sorted(decisions, key=lambda decision: decision.seq)
    known = {decision.seq: decision for decision in ordered}
    effective = _effective(ordered)
    verdicts = _verdicts(effective.values(), known)
    clarifications = [d for d in effective.values() if d.type == DecisionType.CONCEPT_CLARIFIED]
    outcomes = {d.seq: _outcome(d, verdicts.get(d.seq)) for d in clarifications}
    return Review(
        effective=frozenset(effective),
        outcomes=outcomes,
        decided_by={seq: by.seq for seq, by in verdicts.items() if seq in outcomes},
        question=_last_question(effective.values()),
        approved=max((d.seq for d in effective.values() if d.type == DecisionType.SQL_APPROVED), default=None),
        context="\n".join(_context_line(d) for d in clarifications),
        rejected_cards=tuple(dict.fromkeys(_rejected_cards(effective.values()))),
        faults=tuple(
            sorted((*_dangling(effective.values(), known), *_refused(effective, verdicts)), key=lambda f: f.line)
        ),
    )


# ── The effective view ───────────────────────────────────────────────────────────────────────────────────────────────


def _effective(ordered: Iterable[Decision]) -> dict[int, Decision]:
    """What stands after one pass, by seq and in its order."""
    standing: dict[int, Decision] = {}
    # By phase, so that each decision is taken away once, however often a phase is reopened.
    by_phase: dict[int, list[int]] = {phase: [] for phase in PHASES}
    for decision in ordered:
        for seq in _taken_away(decision, by_phase):
            # It may be gone already, or never have been written.
            standing.pop(seq, None)
        standing[decision.seq] = decision
        by_phase[decision.phase].append(decision.seq)
    return standing


def _taken_away(decision: Decision, by_phase: dict[int, list[int]]) -> list[int]:
    if decision.type == DecisionType.DECISION_RETRACTED:
        target = _number("seq", decision.detail)
        return [] if target is None else [target]
    if decision.type == DecisionType.PHASE_REOPENED:
        reopened = _reopened(decision)
        later = [phase for phase in PHASES if reopened is not None and phase > reopened]
        return [seq for phase in later for seq in _emptied(by_phase[phase])]
    return []


def _emptied(seqs: list[int]) -> list[int]:
    taken = seqs.copy()
    seqs.clear()
    return taken


# ── References ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _number(kind: str, detail: str) -> int | None:
    found = _REFERENCE.fullmatch(detail)
    return int(found[2]) if found and found[1] == kind else None


def _target(decision: Decision, known: Mapping[int, Decision]) -> int | None:
    """The earlier decision that this one names, if there is one."""
    seq = _number("seq", decision.detail)
    earlier = seq is not None and seq < decision.seq and seq in known
    return seq if earlier else None


def _reopened(decision: Decision) -> int | None:
    phase = _number("phase", decision.detail)
    return phase if phase in PHASES else None


def _card_id(decision: Decision) -> str | None:
    """The card that a rejection names: in its detail, or in its subject where the detail gives the reason."""
    ids = (text.strip() for text in (decision.detail, decision.subject))
    return next((text for text in ids if _CARD_ID.fullmatch(text)), None)


def _rejected_cards(decisions: Iterable[Decision]) -> list[str]:
    ids = (_card_id(d) for d in decisions if d.type == DecisionType.MEMORY_REJECTED)
    return [card_id for card_id in ids if card_id is not None]


# ── Promoted, declined, refused ──────────────────────────────────────────────────────────────────────────────────────


def _verdicts(effective: Iterable[Decision], known: Mapping[int, Decision]) -> dict[int, Decision]:
    """By the seq that they are about, the last of the effective promotions and declines."""
    targets = ((_target(d, known), d) for d in effective if d.type in _DECIDING)
    return {seq: decision for seq, decision in targets if seq is not None}


def _promotes(decision: Decision) -> bool:
    return decision.type == DecisionType.MEMORY_PROMOTED


def _outcome(clarification: Decision, verdict: Decision | None) -> Outcome:
    if verdict and not _promotes(verdict):
        return Outcome.DECLINED
    if names_table(clarification.subject):
        return Outcome.REFUSED
    return Outcome.PROMOTED if verdict else Outcome.CANDIDATE


def cited_ids(rationale: str) -> tuple[str, ...]:
    """The ids of the cards that a rationale cites (`from mem-0012`), once each; an id is a word of its own."""
    return tuple(dict.fromkeys(found.lower() for found in _CITED.findall(rationale)))


def names_table(subject: str) -> bool:
    """Whether the whole subject is a table's name of the form `fact_*` or `dim_*`, in whatever case or quotes."""
    return _TABLE_NAME.fullmatch(bare(subject)) is not None


# ── What the reading says besides ────────────────────────────────────────────────────────────────────────────────────


def _last_question(effective: Iterable[Decision]) -> str | None:
    rewritten = [d.detail for d in effective if d.type == DecisionType.QUESTION_REWRITTEN and d.detail.strip()]
    return rewritten[-1] if rewritten else None


def _context_line(clarification: Decision) -> str:
    if not clarification.detail.strip():
        return clarification.subject
    return f"{clarification.subject}: {clarification.detail}"


# ── Faults ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _dangling(effective: Iterable[Decision], known: Mapping[int, Decision]) -> list[Fault]:
    wanted = ((d, _wanted_reference(d, known)) for d in effective)
    return [_fault(d, FaultKind.DANGLING_REFERENCE, _says(d, f"not {what}")) for d, what in wanted if what]


def _wanted_reference(decision: Decision, known: Mapping[int, Decision]) -> str | None:
    """What the detail should have named and did not, or None when there is nothing to object to."""
    if decision.type in _DECIDING or decision.type == DecisionType.DECISION_RETRACTED:
        return "the seq:N of an earlier decision" if _target(decision, known) is None else None
    if decision.type == DecisionType.PHASE_REOPENED:
        return f"the phase:N of a phase from {PHASES[0]} to {PHASES[-1]}" if _reopened(decision) is None else None
    if decision.type == DecisionType.MEMORY_REJECTED:
        return "the id of a card" if _card_id(decision) is None else None
    return None


def _refused(effective: Mapping[int, Decision], verdicts: Mapping[int, Decision]) -> list[Fault]:
    promoted = ((effective[seq], by) for seq, by in verdicts.items() if seq in effective and _promotes(by))
    reasons = ((by, _why_refused(target)) for target, by in promoted)
    return [_fault(by, FaultKind.REFUSED_PROMOTION, _says(by, reason)) for by, reason in reasons if reason]


def _why_refused(target: Decision) -> str | None:
    if target.type != DecisionType.CONCEPT_CLARIFIED:
        return f"which is no clarification but {excerpt(target.type)}"
    if names_table(target.subject):
        return f"whose subject only names a table: {excerpt(target.subject)}"
    return None


def _says(decision: Decision, objection: str) -> str:
    return f"the {decision.type} of seq {decision.seq} names {excerpt(decision.detail)}, {objection}"


def _fault(decision: Decision, kind: FaultKind, reason: str) -> Fault:
    return Fault(decision.line, kind, reason)
