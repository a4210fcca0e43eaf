"""Judges what was found by what the archive says: which cards may be shown, in which order, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_pipeline.archive import lookup
from memory_pipeline.cards import Collection
from memory_pipeline.recall.fusion import TEXT_WEIGHTS, VERBATIM_BEHIND, VERBATIM_SOLVED, WEIGHTS, Group, ranked
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
    """The cards that may be shown, best first, and reason → how many points were not believed."""

    cards: list[Ranked]
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for the cards that may be shown.

    Attributes:
        findings: what the index found, without what the archive does not confirm.
        cards_of: question → the cards that came from it.
        admitted: the cards that may be shown, by id.
    """

    findings: Findings
    cards_of: Mapping[str, Sequence[str]]
    admitted: Mapping[str, Candidate]

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
        return {i: card for i, card in self.admitted.items() if card.family.collection is collection}

    def _measured(self, collection: Collection) -> dict[Signal, Values]:
        found = self.findings.values.items()
        return {signal: values for signal, values in found if signal.searched is collection}

    def _scaled(self, collection: Collection) -> dict[str, dict[str, float]]:
        """Signal → item → its share of the best, of the searches in a collection."""
        return {s.name: scaled(values, lexical=s.lexical) for s, values in self._measured(collection).items()}


def judged(tx: Tx, request: Request, found: Found, lexicon: Lexicon) -> Judgement:
    """What the index found, verified: two statements, however much it is."""
    findings = inspected(request.workspace, found.hits)
    questions = _questions(tx, request, findings)
    candidates = _candidates(tx, request, _reached(findings, questions))
    for collection in _OF_CARDS:
        compared(findings, collection, _fingerprints(collection, candidates.values()))
    believed = _reached(findings, questions)  # a card whose point was dropped is found in another way, or not at all
    admitted = _admitted(request, (c for c in candidates.values() if c.verbatim or c.card_id in believed))
    evidence = Evidence(findings, {question.question_id: question.card_ids for question in questions}, admitted)
    groups = [evidence.of_cards(lexicon, request.question), evidence.of_solved_questions()]
    return Judgement(ranked(groups, _verbatim(admitted, questions)), findings.counted())


def judged_text(tx: Tx, request: Request) -> Judgement:
    """What PostgreSQL finds by words alone, in one ranking, since one function measured cards of all families."""
    matches = lookup.by_text(tx, request.question, request.families)
    known = lookup.questions(tx, (), request.text_key)
    behind = {card for question in known for card in question.card_ids}
    admitted = _admitted(request, _candidates(tx, request, matches.keys() | behind).values())
    values = scaled({card: rank for card, rank in matches.items() if card in admitted}, lexical=True)
    return Judgement(ranked([Group({"text": values}, TEXT_WEIGHTS)], _verbatim(admitted, known)), {})


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


def _admitted(request: Request, candidates: Iterable[Candidate]) -> dict[str, Candidate]:
    """Those that the request wants. The index filters too, but a question leads to any card, and a payload can lie."""
    return {
        c.card_id: c
        for c in candidates
        if c.family in request.families and not c.decided and request.scope.holds(c.place)
    }


def _group(collection: Collection, values: Mapping[str, Values], cards: Mapping[str, Candidate]) -> Group:
    shown = {name: {card: value for card, value in of.items() if card in cards} for name, of in values.items()}
    return Group(shown, WEIGHTS[collection])


def _verbatim(admitted: Mapping[str, Candidate], known: Iterable[KnownQuestion]) -> dict[str, float]:
    behind = {card for question in known if question.verbatim for card in question.card_ids if card in admitted}
    solved = {card: VERBATIM_SOLVED for card, candidate in admitted.items() if candidate.verbatim}
    return dict.fromkeys(behind, VERBATIM_BEHIND) | solved
