"""Judges what was found by what the archive says: which cards may be shown, in which order, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_pipeline.archive import lookup
from memory_pipeline.cards import Collection
from memory_pipeline.recall.fusion import SHARES, TEXT_WEIGHTS, VERBATIM_BEHIND, VERBATIM_SOLVED, WEIGHTS, Group, ranked
from memory_pipeline.recall.signals import cards_behind
from memory_pipeline.recall.verify import compared, inspected

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Tx
    from memory_pipeline.archive.lookup import Candidate, KnownQuestion
    from memory_pipeline.recall.finder import Found
    from memory_pipeline.recall.fusion import Ranked
    from memory_pipeline.recall.request import Request
    from memory_pipeline.recall.verify import Findings

_OF_CARDS = (Collection.MEMORY_CARDS, Collection.SOLVED_QUESTIONS)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The cards that may be shown, best first, and reason → how many points were not believed."""

    cards: list[Ranked]
    dropped: Mapping[str, int]


def judged(tx: Tx, request: Request, found: Found) -> Judgement:
    """What the index found, verified: two statements, however much it is."""
    findings = inspected(request.workspace, found.hits)
    known = lookup.questions(tx, findings.claims.get(Collection.QUESTIONS, {}), request.text_key)
    compared(findings, Collection.QUESTIONS, {question.question_id: question.fingerprint for question in known})
    candidates = _candidates(tx, request, _reached(findings, known))
    for collection in _OF_CARDS:
        compared(findings, collection, _fingerprints(collection, candidates.values()))
    admitted = _admitted(request, candidates.values())
    groups = _groups(findings, known, admitted)
    return Judgement(ranked(groups, _verbatim(admitted, known)), findings.counted())


def judged_text(tx: Tx, request: Request) -> Judgement:
    """What PostgreSQL finds by words alone, in one ranking, since one function measured cards of all families."""
    matches = lookup.by_text(tx, request.question, request.families)
    known = lookup.questions(tx, (), request.text_key)
    behind = {card for question in known for card in question.card_ids}
    admitted = _admitted(request, _candidates(tx, request, matches.keys() | behind).values())
    values = {card: rank for card, rank in matches.items() if card in admitted}
    return Judgement(ranked([Group({"text": values}, TEXT_WEIGHTS)], _verbatim(admitted, known)), {})


def _reached(findings: Findings, known: Iterable[KnownQuestion]) -> set[str]:
    reached = {card for question in known for card in question.card_ids}
    return reached.union(*(findings.claims.get(collection, {}) for collection in _OF_CARDS))


def _candidates(tx: Tx, request: Request, card_ids: Iterable[str]) -> dict[str, Candidate]:
    scoped = bool(request.scope.filters)
    return lookup.candidates(tx, card_ids, request.text_key, session_id=request.session_id, scoped=scoped)


def _fingerprints(collection: Collection, candidates: Iterable[Candidate]) -> dict[str, str]:
    return {c.card_id: c.fingerprint for c in candidates if c.family.collection is collection}


def _admitted(request: Request, candidates: Iterable[Candidate]) -> dict[str, Candidate]:
    """Those that the request wants. The index filters too, but a question leads to any card, and a payload can lie."""
    return {
        c.card_id: c
        for c in candidates
        if c.family in request.families and not c.decided and request.scope.holds(c.place)
    }


def _groups(findings: Findings, known: Iterable[KnownQuestion], admitted: Mapping[str, Candidate]) -> list[Group]:
    cards_of = {question.question_id: question.card_ids for question in known}
    signals: dict[Collection, dict[str, Mapping[str, float]]] = {collection: {} for collection in _OF_CARDS}
    for signal, values in findings.values.items():
        of_cards = cards_behind(values, cards_of) if signal.searched is Collection.QUESTIONS else values
        shown = {card: value for card, value in of_cards.items() if card in admitted}
        signals[signal.ranks][signal.name] = shown
    return [Group(signals[collection], WEIGHTS[collection], SHARES[collection]) for collection in _OF_CARDS]


def _verbatim(admitted: Mapping[str, Candidate], known: Iterable[KnownQuestion]) -> dict[str, float]:
    behind = {card for question in known if question.verbatim for card in question.card_ids if card in admitted}
    solved = {card: VERBATIM_SOLVED for card, candidate in admitted.items() if candidate.verbatim}
    return dict.fromkeys(behind, VERBATIM_BEHIND) | solved
