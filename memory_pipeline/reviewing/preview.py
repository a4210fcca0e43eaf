"""What a reviewer is shown before deciding: every candidate of a session, with the cards that say the same already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_pipeline.archive import cards, duplicates
from memory_pipeline.archive.intake import joined_cards
from memory_pipeline.candidates import Candidate, candidates, text_key
from memory_pipeline.review import Outcome, cited_ids
from memory_pipeline.session_view import is_table, session_tables

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Tx
    from memory_pipeline.archive.duplicates import Alike
    from memory_pipeline.cards import CardContent
    from memory_pipeline.ledger import Decision, Fault
    from memory_pipeline.reviewing.state import SessionState

_SHOWN = 80  # characters of a text in a warning


@dataclass(frozen=True, slots=True)
class CandidatePreview:
    """A clarification to decide about.

    Attributes:
        seq: by which it is named; the first of those that say the same.
        seqs: of all that say the same, which are decided together.
        subject, detail, rationale, concepts, tables: as it was written.
        question: that the session asks.
        joins: the cards that it becomes one more source of; of equal ones, one may cite another card than the others.
        makes_card: whether it makes a card of its own.
        alike: the cards that say the same but for form, or nearly, or something else of the same subject.
        warnings: what a reviewer should mind.
    """

    seq: int
    seqs: tuple[int, ...]
    subject: str
    detail: str
    rationale: str
    concepts: tuple[str, ...]
    tables: tuple[str, ...]
    question: str
    joins: tuple[str, ...]
    makes_card: bool
    alike: tuple[Alike, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """What there is to decide about a session.

    Attributes:
        session_id, question, status: of the session.
        candidates: all of them, in seq order.
        promoted: how many clarifications are promoted.
        declined: how many are declined.
        refused: the subjects of those that only name a table, and never become cards, by seq.
        unfinished_line: whether a last line is still being written, and does not count yet.
        faults: what of the session cannot be used, or has no effect.
    """

    session_id: str
    question: str
    status: str
    candidates: tuple[CandidatePreview, ...]
    promoted: int
    declined: int
    refused: Mapping[int, str]
    unfinished_line: bool
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """How much there is to decide about a session, which is known without looking at any card.

    Attributes:
        candidates: how many.
        refused, unfinished_line, faults: as a `Preview` has them.
    """

    candidates: int
    refused: Mapping[int, str]
    unfinished_line: bool
    faults: tuple[Fault, ...]


def outline(state: SessionState) -> Outline:
    """How much there is to decide about a session."""
    count = len(candidates(state.decisions, state.view))
    return Outline(count, _refused(state), state.reading.waiting, _faults(state))


def preview(tx: Tx, state: SessionState) -> Preview:
    """What there is to decide about a session, from its ledger and from the archive; neither is changed."""
    found = candidates(state.decisions, state.view)
    written = [each.clarification for each in found]
    known = {decision.seq: decision for decision in state.decisions}
    said = [[known[seq] for seq in candidate.seqs] for candidate in found]
    joined = _joined(tx, said)
    alike = duplicates.alike(tx, [(each.subject, each.detail) for each in written])
    tables = session_tables(state.decisions)
    cited = cards.contents(tx, {i for equal in said for each in equal for i in cited_ids(each.rationale)})
    return Preview(
        session_id=state.reading.session_id,
        question=state.question,
        status=state.manifest.status.value,
        candidates=tuple(
            _previewed(
                candidate, state.question, joins, others, tuple(_warnings(candidate, equal, joins, cited, tables))
            )
            for candidate, equal, joins, others in zip(found, said, joined, alike, strict=True)
        ),
        promoted=len(state.view.seqs(Outcome.PROMOTED)),
        declined=len(state.view.seqs(Outcome.DECLINED)),
        refused=_refused(state),
        unfinished_line=state.reading.waiting,
        faults=_faults(state),
    )


def _refused(state: SessionState) -> dict[int, str]:
    return {d.seq: d.subject for d in state.decisions if state.view.outcomes.get(d.seq) is Outcome.REFUSED}


def _faults(state: SessionState) -> tuple[Fault, ...]:
    return (*state.reading.faults, *state.view.faults)


def _previewed(
    candidate: Candidate,
    question: str,
    joins: AbstractSet[str | None],
    alike: Sequence[Alike],
    warnings: tuple[str, ...],
) -> CandidatePreview:
    written = candidate.clarification
    return CandidatePreview(
        seq=written.seq,
        seqs=candidate.seqs,
        subject=written.subject,
        detail=written.detail,
        rationale=written.rationale,
        concepts=written.concepts,
        tables=written.tables,
        question=question,
        joins=tuple(sorted(card_id for card_id in joins if card_id)),
        makes_card=None in joins,
        alike=tuple(alike),
        warnings=warnings,
    )


def _joined(tx: Tx, said: Sequence[Sequence[Decision]]) -> list[set[str | None]]:
    """What the equal clarifications of each candidate join, None standing for a card of their own."""
    asked = [(number, decision) for number, equal in enumerate(said) for decision in equal]
    cards_of = joined_cards(tx, [(text_key(decision), decision.rationale) for _, decision in asked])
    joined: list[set[str | None]] = [set() for _ in said]
    for (number, _), card_id in zip(asked, cards_of, strict=True):
        joined[number].add(card_id)
    return joined


def _warnings(
    candidate: Candidate,
    said: Sequence[Decision],
    joins: AbstractSet[str | None],
    cited: Mapping[str, CardContent],
    tables: frozenset[str],
) -> Iterator[str]:
    written = candidate.clarification
    if is_table(written.subject, tables):
        yield f"{written.subject[:_SHOWN]} is a table of this session, and no concept"
    for seq, outcome in candidate.decided.items():
        yield f"the same was {outcome.value} already, as seq {seq}"
    if len(joins) > 1:
        yield "it is said several times, and not every time taken from the same card"
    for card_id in dict.fromkeys(card_id for each in said for card_id in cited_ids(each.rationale)):
        if card_id not in cited:
            yield f"{card_id}, which it cites, is gone"
        elif card_id not in joins:
            card = cited[card_id]
            says = f"{(card.subject or card.question)[:_SHOWN]}: {(card.detail or card.sql)[:_SHOWN]}"
            yield f"{card_id}, which it cites, says something else ({says}), and is not confirmed"
