"""What speaks for a card, each signal by an example, through archive and index."""

from __future__ import annotations

import pytest

from memory_pipeline.cards import CardContent, Collection, Family
from memory_pipeline.recall import RecallHit, RecallResult
from memory_pipeline.recall.fusion import WEIGHTS
from tests.builders import approved, clarified, promoted
from tests.recall.memories import Memory, a_concept, a_solved, ids

OF_CARDS = WEIGHTS[Collection.MEMORY_CARDS]
OF_SOLVED = WEIGHTS[Collection.SOLVED_QUESTIONS]


def by_words(hit: RecallHit) -> set[str]:
    """The signals that spoke for a hit because it shares words with the question."""
    return hit.signals.keys() & {"lexical", "coverage"}


def shape_of(card_id: str, result: RecallResult) -> float:
    """What likeness of shape contributed to a hit."""
    return next(hit.signals.get("shape", 0.0) for hit in result.hits if hit.card_id == card_id)


def test_a_concept_is_found_by_its_meaning_in_a_paraphrase(understanding: Memory):
    understanding.make("psd", language="italian")
    stay, *_ = understanding.hold(
        a_concept("durata della degenza", "giorni fra ammissione e dimissione"),
        a_concept("reparto", "unità operativa"),
        a_concept("età", "anni compiuti"),
        a_concept("infarto", "codice ICD I21"),
        workspace="psd",
    )
    understanding.project("psd")
    best = understanding.search("Quanto tempo si rimane ricoverati?", workspace="psd", limit=1).hits[0]
    assert best.card_id == stay
    assert best.signals == {"dense": pytest.approx(OF_CARDS["dense"])}


def test_a_concept_is_found_by_its_meaning_in_another_language(understanding: Memory):
    heart, *_ = understanding.hold(
        a_concept("infarto", "codice ICD I21"),
        a_concept("reparto", "unità di degenza"),
        a_concept("età", "anni compiuti"),
    )
    understanding.project()
    assert understanding.search("heart attack", limit=1).hits[0].card_id == heart


def test_a_question_that_uses_the_very_term_of_a_card_finds_it_among_cards_that_share_its_words(indifferent: Memory):
    indifferent.hold(*[a_concept("active ward", f"patient {n}") for n in range(10)])
    [term] = indifferent.hold(a_concept("active patient", "seen within the last twelve months by whoever"))
    indifferent.project()
    best, second, *_ = indifferent.search("how many active patients are there?").hits
    assert (best.card_id, best.signals["coverage"]) == (term, pytest.approx(OF_CARDS["coverage"]))
    assert second.signals["coverage"] < best.signals["coverage"]


def test_the_card_whose_source_question_is_nearest_has_the_votes(understanding: Memory):
    understanding.make("psd", language="italian")
    for n, asked in enumerate(
        ["Quanti posti letto ha ogni reparto?", "Quanti malati sono morti nel 2023?", "Età media?"]
    ):
        decisions = clarified(1, f"x{n}", f"y{n}"), promoted(2, 1)
        understanding.session(
            *decisions, session=f"s{n}", question=asked, sql=None, workspace="psd", language="italian"
        )
    understanding.ingest("psd")
    understanding.project("psd")
    hits = understanding.search("Quanti decessi ci sono stati nel 2021?", workspace="psd").hits
    votes = {hit.subject: hit.signals.get("questions", 0.0) for hit in hits}  # of the rest, which is noise, nothing
    assert votes.pop("x1") == pytest.approx(OF_CARDS["questions"])
    assert [vote < OF_CARDS["questions"] for vote in votes.values()] == [True, True]


def test_a_card_behind_every_question_has_no_votes_from_the_nearest(memory: Memory):
    asked = ["How many beds has each ward?", "Who was discharged?", "Average age?"]
    for n, question in enumerate(asked):
        decisions = clarified(1, f"x{n}", f"y{n}"), clarified(2, "ward", "unit"), promoted(3, 1), promoted(4, 2)
        memory.session(*decisions, session=f"s{n}", question=question, sql=None)
    memory.ingest()
    memory.project()
    for n, question in enumerate(asked):
        votes = {hit.subject: hit.signals.get("questions", 0.0) for hit in memory.search(question).hits}
        assert (votes[f"x{n}"], votes["ward"]) == (pytest.approx(OF_CARDS["questions"]), 0)


def test_a_card_is_found_by_the_words_of_the_question_behind_it(indifferent: Memory):
    for n, asked in enumerate(["Admissions to wards?", "Quarterly discharges, by ward?", "Average age?"]):
        indifferent.session(clarified(1, f"x{n}", f"y{n}"), promoted(2, 1), session=f"s{n}", question=asked, sql=None)
    indifferent.ingest()
    indifferent.project()
    best, second, _ = indifferent.search("quarterly discharge per ward").hits
    assert (best.subject, second.subject) == ("x1", "x0")
    assert best.signals["questions_lexical"] == pytest.approx(OF_CARDS["questions_lexical"])


def test_of_equals_the_one_that_more_sessions_confirm_is_first(indifferent: Memory):
    confirmed = {"s1": ["bed", "ward", "room"], "s2": ["ward", "room"], "s3": ["room"], "s4": ["room"]}
    for session, subjects in confirmed.items():
        decisions = [clarified(n, subject, "x") for n, subject in enumerate(subjects, start=1)]
        promotions = [promoted(n + 3, n) for n in range(1, len(subjects) + 1)]
        indifferent.session(*decisions, *promotions, session=session, question="How many?", sql=None)
    indifferent.ingest()
    indifferent.project()
    hits = indifferent.search("something else").hits
    assert [(hit.subject, hit.sessions) for hit in hits] == [("room", 4), ("ward", 2), ("bed", 1)]
    assert hits[0].signals["confirmations"] == pytest.approx(OF_CARDS["confirmations"])
    assert hits[1].signals["confirmations"] == pytest.approx(OF_CARDS["confirmations"] / 2)
    assert {name: v for name, v in hits[0].signals.items() if name != "confirmations"} == hits[2].signals


@pytest.mark.parametrize(
    ("language", "card", "question"),
    [
        ("italian", ("ricovero ordinario", "tipo = 1"), "quanti ricoveri ordinari?"),
        ("italian", ("età", "anni compiuti"), "dell'eta media"),
        ("italian", ("eta", "anni compiuti"), "qual è l'ETÀ media?"),
        ("italian", ("attivo", "dim_time.flag_attivo = TRUE"), "flag_attivo"),
        ("italian", ("stato", "dim_time.flag_attivo = TRUE"), "attivi?"),
        ("italian", ("stato", "dim_time.flag_attivo = TRUE"), "che cos'è dim_time?"),
        ("italian", ("stato", "dim_time.flag_attivo = TRUE"), "TIME"),
        ("english", ("admission", "type = 1"), "How many admissions?"),
        ("english", ("seen patient", "type = 1"), "the patients who were seen"),
        ("english", ("state", "CDSCode > 3"), "code"),
        ("english", ("state", "CDSCode > 3"), "which CDSCode?"),
    ],
)
def test_a_card_is_found_by_its_words_in_another_form(indifferent: Memory, language, card, question):
    indifferent.make("other", language=language)
    *_, held = indifferent.hold(a_concept("xxx", "yyy"), a_concept("zzz", "www"), a_concept(*card), workspace="other")
    indifferent.project("other")
    best, *others = indifferent.search(question, workspace="other").hits
    assert (best.card_id, by_words(best)) == (held, {"lexical", "coverage"})
    assert not any(map(by_words, others))


@pytest.mark.parametrize("question", ["perché?", "perche", "l'età d'esordio", "c'è dell'oro?"])
def test_stop_words_and_elisions_find_nothing_by_words(indifferent: Memory, question):
    indifferent.make("psd", language="italian")
    indifferent.hold(a_concept("perché", "più"), a_concept("vitamina d", "c l e"), workspace="psd")
    indifferent.project("psd")
    assert not any(map(by_words, indifferent.search(question, workspace="psd").hits))


def test_a_solved_question_of_the_same_shape_is_first_whatever_the_values(memory: Memory):
    memory.hold(*[a_solved(f"patients older than {n} in ward 'A3'{', or not' * n}") for n in range(1, 20)])
    [stored] = memory.hold(a_solved("patients older than 80 in ward 'A3'"))
    memory.project()
    best = memory.search('patients older than 65 in ward "B1"', limit=1).hits[0]
    assert (best.card_id, best.signals["shape"]) == (stored, pytest.approx(OF_SOLVED["shape"]))


def test_a_value_is_known_from_the_sql_of_another_card(memory: Memory):
    others = [a_solved(f"gout by {group}") for group in ("age", "sex", "year", "kind", "room", "month")]
    [stored, *_] = memory.hold(
        a_solved("patients with asthma by ward", "SELECT 1 FROM v WHERE sick = 'asthma'"), *others
    )
    memory.project()
    question = "patients with gout by ward"
    assert shape_of(stored, memory.search(question)) < OF_SOLVED["shape"]
    memory.hold(a_solved("something else", "SELECT 2 FROM v WHERE sick IN ('gout', 'flu')"))
    memory.project()
    result = memory.search(question)
    assert (ids(result)[0], shape_of(stored, result)) == (stored, pytest.approx(OF_SOLVED["shape"]))


def test_a_general_rule_and_a_more_specific_one_both_come(understanding: Memory):
    general = CardContent(Family.SQL_RULE, subject="active patient", detail="flag_attivo = TRUE")
    specific = CardContent(
        Family.SQL_RULE, subject="active patient of the ward", detail="flag_attivo = TRUE AND ward = 3"
    )
    held = understanding.hold(general, specific)
    understanding.project()
    assert sorted(ids(understanding.search("active patients of the ward", limit=2))) == held
    assert sorted(ids(understanding.search("active patients", limit=2))) == held


def test_what_the_signals_of_each_hit_contributed_adds_up_to_its_score(understanding: Memory):
    for n in range(3):
        decisions = clarified(1, f"subject {n % 2}", f"detail {n % 2}"), approved(2), promoted(3, 1)
        understanding.session(*decisions, session=f"s{n}", question=f"question {n} of a subject")
    understanding.ingest()
    understanding.hold(a_concept(), a_solved())
    understanding.project()
    hits = understanding.search("question 1 of a subject").hits
    assert len(hits) == 7
    assert all(sum(hit.signals.values()) == pytest.approx(hit.score) for hit in hits)
    assert set().union(*(hit.signals for hit in hits)) == OF_CARDS.keys() | OF_SOLVED.keys() | {"verbatim"}


def test_the_first_hits_do_not_depend_on_how_many_are_asked_for(understanding: Memory):
    understanding.hold(*[a_concept(f"ward {n}", f"unit {n} of the hospital") for n in range(60)])
    understanding.hold(*[a_solved(f"How many beds has ward {n}?") for n in range(20)])
    understanding.project()
    question = "beds of the units 3 and 17"
    most = understanding.search(question, limit=25).hits
    for limit in (1, 3, 10, 24):
        assert understanding.search(question, limit=limit).hits == most[:limit]
