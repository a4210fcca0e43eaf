"""Judges what was found by what the archive says: which cards may be shown, in which order, and why."""

from __future__ import annotations

from collections.abc import Collection as Items
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory_pipeline.archive import lookup
from memory_pipeline.cards import Collection
from memory_pipeline.recall.fusion import TEXT_WEIGHTS, VERBATIM_BEHIND, VERBATIM_SOLVED, WEIGHTS, Group, ranked
from memory_pipeline.recall.result import Omission
from memory_pipeline.recall.signals import SHAPE, best_behind, confirmations, coverage, same_text, scaled, terms, votes
from memory_pipeline.recall.verify import compared, inspected

if TYPE_CHECKING:
    from memory_pipeline.archive.database import Tx
    from memory_pipeline.archive.lookup import Candidate, KnownQuestion
    from memory_pipeline.lexical import Lexicon
    from memory_pipeline.recall.finder import Found
    from memory_pipeline.recall.fusion import Ranked
    from memory_pipeline.recall.request import Request
    from memory_pipeline.recall.signals import Signal, Values
    from memory_pipeline.recall.verify import Findings

_OF_CARDS = (Collection.MEMORY_CARDS, Collection.SOLVED_QUESTIONS)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What may be shown, and what may not.

    Attributes:
        cards: the cards that may be shown, best first.
        dropped: reason → how many points were not believed.
        refused: the cards of the families asked for that were found and may not be shown, best first; none where that
            is not to be explained.
        reasons: why, for each of these.
    """

    cards: list[Ranked]
    dropped: Mapping[str, int]
    refused: Sequence[Ranked] = ()
    reasons: Mapping[str, Omission] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for cards: for those that may be shown, or for those that may not.

    Attributes:
        findings: what the index found, without what the archive does not confirm.
        cards_of: question → the cards that came from it.
        cards: these cards, by id.
    """

    findings: Findings
    cards_of: Mapping[str, Sequence[str]]
    cards: Mapping[str, Candidate]

    def of_cards(self, lexicon: Lexicon, question: str) -> Group:
        """For concepts, rules and pitfalls."""
        cards, asked = self._of(Collection.MEMORY_CARDS), lexicon.tokens(question)
        questions = self._scaled(Collection.QUESTIONS)
        values = {
            **self._scaled(Collection.MEMORY_CARDS),
            "coverage": {
                i: coverage(asked, map(lexicon.tokens, terms(c.subject)), lexicon.tokens(c.detail))
                for i, c in cards.items()
            },
            "questions": votes(questions.get("questions", {}), self.cards_of),
            "questions_lexical": best_behind(questions.get("questions_lexical", {}), self.cards_of),
        }
        values["confirmations"] = confirmations({i: c.sessions for i, c in cards.items()}, values.values())
        return _group(Collection.MEMORY_CARDS, values, cards)

    def of_solved_questions(self) -> Group:
        """For solved questions."""
        collection = Collection.SOLVED_QUESTIONS
        shapes = self._measured(collection).get(SHAPE, {})
        values = {**self._scaled(collection), "same_shape": same_text(shapes)}
        return _group(collection, values, self._of(collection))

    def _of(self, collection: Collection) -> dict[str, Candidate]:
        return {i: card for i, card in self.cards.items() if card.family.collection is collection}

    def _measured(self, collection: Collection) -> dict[Signal, Values]:
        found = self.findings.values.items()
        return {signal: values for signal, values in found if signal.searched is collection}

    def _scaled(self, collection: Collection) -> dict[str, dict[str, float]]:
        """Signal → item → its share of the best, of the searches in a collection."""
        return {s.name: scaled(values, lexical=s.lexical) for s, values in self._measured(collection).items()}


def judged(tx: Tx, request: Request, found: Found, lexicon: Lexicon, outside: Found | None = None) -> Judgement:
    """What the index found, verified: two statements, however much it is.

    Args:
        tx: an open transaction.
        request: what is asked.
        found: what the index found for that.
        lexicon: of the workspace's language.
        outside: what it found whatever the scope; it explains what the scope left out, and changes nothing else.
    """
    findings = inspected(request.workspace, found.hits)
    wider = inspected(request.workspace, outside.hits if outside else {})
    questions = _questions(tx, request, findings)
    candidates = _candidates(tx, request, _reached(findings, questions) | _reached(wider, ()))
    for collection in _OF_CARDS:
        current = _fingerprints(collection, candidates.values())
        compared(findings, collection, current)
        compared(wider, collection, current)
    believed = _reached(findings, questions)  # a card whose point was dropped is found in another way, or not at all
    cards_of = {question.question_id: question.card_ids for question in questions}

    def best(found_by: Findings, cards: Mapping[str, Candidate]) -> list[Ranked]:
        evidence = Evidence(found_by, cards_of, cards)
        groups = [evidence.of_cards(lexicon, request.question), evidence.of_solved_questions()]
        return ranked(groups, _verbatim(cards, questions))

    cards = best(findings, _admitted(request, _among(candidates, believed)))
    reasons = _reasons(request, _among(candidates, believed | _reached(wider, ())))
    refused = best(wider if outside else findings, {card: candidates[card] for card in reasons}) if reasons else []
    return Judgement(cards, findings.counted(), refused, reasons)


def judged_text(tx: Tx, request: Request) -> Judgement:
    """What PostgreSQL finds by words alone, in one ranking, since one function measured cards of all families."""
    matches = lookup.by_text(tx, request.question, request.families)
    known = lookup.questions(tx, (), request.text_key)
    behind = {card for question in known for card in question.card_ids}
    candidates = _candidates(tx, request, matches.keys() | behind)

    def best(cards: Mapping[str, Candidate]) -> list[Ranked]:
        values = scaled({card: rank for card, rank in matches.items() if card in cards}, lexical=True)
        return ranked([Group({"text": values}, TEXT_WEIGHTS)], _verbatim(cards, known))

    reasons = _reasons(request, candidates.values())
    refused = best({card: candidates[card] for card in reasons})
    return Judgement(best(_admitted(request, candidates.values())), {}, refused, reasons)


def _questions(tx: Tx, request: Request, findings: Findings) -> list[KnownQuestion]:
    """The near questions whose points the archive confirms, and those asked word for word."""
    known = lookup.questions(tx, findings.claimed(Collection.QUESTIONS), request.text_key)
    compared(findings, Collection.QUESTIONS, {question.question_id: question.fingerprint for question in known})
    believed = findings.claimed(Collection.QUESTIONS)
    return [question for question in known if question.verbatim or question.question_id in believed]


def _reached(findings: Findings, questions: Iterable[KnownQuestion]) -> set[str]:
    """The cards that points believed so far lead to, by themselves or as what came from a question."""
    behind = {card for question in questions for card in question.card_ids}
    return behind.union(*map(findings.claimed, _OF_CARDS))


def _candidates(tx: Tx, request: Request, card_ids: Iterable[str]) -> dict[str, Candidate]:
    scoped = bool(request.scope.filters)
    return lookup.candidates(tx, card_ids, request.text_key, session_id=request.session_id, scoped=scoped)


def _fingerprints(collection: Collection, candidates: Iterable[Candidate]) -> dict[str, str]:
    return {c.card_id: c.fingerprint for c in candidates if c.family.collection is collection}


def _among(candidates: Mapping[str, Candidate], reached: Items[str]) -> list[Candidate]:
    """Those that something leads to; the question itself leads to those that were asked word for word."""
    return [candidate for card, candidate in candidates.items() if candidate.verbatim or card in reached]


def _admitted(request: Request, candidates: Iterable[Candidate]) -> dict[str, Candidate]:
    """Those that the request wants. The index filters too, but a question leads to any card, and a payload can lie."""
    return {c.card_id: c for c in candidates if c.family in request.families and not _omission(request, c)}


def _reasons(request: Request, candidates: Iterable[Candidate]) -> dict[str, Omission]:
    """Why the request does not want some of the cards of its families, where that is to be explained."""
    if not request.explain:
        return {}
    found = {c.card_id: _omission(request, c) for c in candidates if c.family in request.families}
    return {card: reason for card, reason in found.items() if reason}


def _omission(request: Request, candidate: Candidate) -> Omission | None:
    """Why the request does not want a card; None when it does."""
    if candidate.decided:
        return Omission(candidate.decided)
    return None if request.scope.holds(candidate.place) else Omission.OUTSIDE_SCOPE


def _group(collection: Collection, values: Mapping[str, Values], cards: Mapping[str, Candidate]) -> Group:
    shown = {name: {card: value for card, value in of.items() if card in cards} for name, of in values.items()}
    return Group(shown, WEIGHTS[collection])


def _verbatim(admitted: Mapping[str, Candidate], known: Iterable[KnownQuestion]) -> dict[str, float]:
    behind = {card for question in known if question.verbatim for card in question.card_ids if card in admitted}
    solved = {card: VERBATIM_SOLVED for card, candidate in admitted.items() if candidate.verbatim}
    return dict.fromkeys(behind, VERBATIM_BEHIND) | solved
