from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.shapes import could_be_named, folded, phrases, shape, words

HUGE = 10**6
READ_AT_MOST = 4_000  # characters


def plain(text: str) -> str:
    """A masked question as shapes are written, so that the tables below can be read: a capital first, no end marks."""
    one_line = " ".join(text.split()).strip("?!.") or text
    one_line = one_line.lower() if one_line.isupper() else one_line
    return one_line[:1].upper() + one_line[1:]


def test_case_and_end_marks_do_not_change_a_shape():
    asked = ("Quante ablazioni nel 2023?", "quante ablazioni nel 2021", " QUANTE ABLAZIONI NEL 7 !")
    assert {shape(question, (), "italian") for question in asked} == {"Quante ablazioni nel #"}
    assert shape("?", (), "italian") == "?"


@pytest.mark.parametrize(
    ("question", "language", "masked"),
    [
        ("Quanti pazienti «attivi» hanno 'alto rischio'?", "italian", "Quanti pazienti # hanno #?"),
        ('Patients from “New town” or "old town" or ‘no town’?', "english", "Patients from # or # or #?"),
        ("Wie viele „Neue“, „alte”, »junge« und ‚kleine‘?", "german", "Wie viele #, #, # und #?"),
        ("rows of `patients` and ‹visits›", "english", "rows of # and #"),
        ("l'età dell'utente e' nota?", "italian", "l'età dell'utente e' nota?"),
        ("What's the dog's name and the cats' age?", "english", "What's the dog's name and the cats' age?"),
        ("how tall: 5'10\" or so", "english", "how tall: #'#\" or so"),
    ],
)
def test_quoted_texts_are_masked_and_apostrophes_left(question, language, masked):
    assert shape(question, (), language) == plain(masked)


@pytest.mark.parametrize(
    ("question", "masked"),
    [
        ("quanti nel 2023?", "quanti nel #?"),
        ("dal 01/02/2023 al 2023-03-04 alle 12:30", "dal # al # alle #"),
        ("oltre 1.234,56 o il 10%", "oltre # o il #%"),
        ("con codice e11.9 o a1b2, q1", "con codice # o #, #"),
        ("le prime 3. e poi", "le prime #. e poi"),
    ],
)
def test_numbers_dates_and_codes_are_masked(question, masked):
    assert shape(question, (), "italian") == plain(masked)


@pytest.mark.parametrize(
    ("question", "language", "masked"),
    [
        ("Quante visite ha fatto Mario Rossi a Roma?", "italian", "Quante visite ha fatto # # a #?"),
        ("Quanti pazienti ha il Dr. Rossi?", "italian", "Quanti pazienti ha il #. #?"),
        ("quanti ne ha il sig. Rossi o la sig.ra Verdi", "italian", "quanti ne ha il sig. # o la sig.ra #"),
        ("visits of J. Smith and of Prof. Jones", "english", "visits of J. # and of #. #"),
        ("Which drugs did EMA list?", "english", "Which drugs did # list?"),
        ("nati all'Aquila, in Italia", "italian", "nati all'#, in #"),
        ("Wie viele Patienten hat Berlin?", "german", "Wie viele Patienten hat Berlin?"),
        ("columns flag_Attivo, FLAG_ATTIVO and CDSCode", "english", "columns flag_Attivo, FLAG_ATTIVO and CDSCode"),
    ],
)
def test_names_are_told_by_their_capitals(question, language, masked):
    assert shape(question, (), language) == plain(masked)


@pytest.mark.parametrize("word", ["SENZA", "NON", "MIN", "MAX", "DOPO", "PRIMA", "CON"])
def test_capitals_that_stress_a_word_make_no_name_of_it(word):
    question = f"quanti {word} diabete al CUP?"
    assert shape(question, (), "italian") == plain(f"quanti {word} diabete al #?")


@pytest.mark.parametrize(
    ("question", "masked"),
    [
        ("quanti ricoveri a gennaio e a febbraio?", "quanti ricoveri a # e a #?"),
        ("quanti dal 3 marzo 2023 al 4 Aprile?", "quanti dal # # # al # #?"),
        ("Maggio o giugno: quanti?", "# o #: quanti?"),
        ("quanti a luglio, agosto, settembre?", "quanti a #, #, #?"),
        ("ottobre-novembre, poi dicembre", "#-#, poi #"),
        ("ogni lunedì, martedì o mercoledì", "ogni #, # o #"),
        ("di giovedì, VENERDÌ, sabato e domenica", "di #, #, # e #"),
        (unicodedata.normalize("NFD", "quanti di lunedì?"), "quanti di #?"),
        ("per la maggior parte, in domeniche e marzolini", "per la maggior parte, in domeniche e marzolini"),
    ],
)
def test_italian_months_and_days_are_masked(question, masked):
    assert shape(question, (), "italian") == plain(masked)


def test_other_languages_have_no_italian_months():
    assert shape("cuantos de marzo?", (), "spanish") == "Cuantos de marzo"


@pytest.mark.parametrize(
    "question",
    [
        "Elenca i pazienti per mese. Mostra i totali.",
        "Sono attivi? Quanti? Elenca!",
        "Domanda: quanti sono?\nMostra anche gli altri",
        "Quanti sono? (Elenca tutti.)",
        "Elenca:\n- Solo attivi\n• Anche altri",
        "¿Cuántos hay? ¡Muestra todos!",
        "",
        "?!",
    ],
)
def test_the_first_word_of_a_sentence_or_line_is_no_name(question):
    assert shape(question, (), "italian") == plain(question)


@pytest.mark.parametrize("question", ["QUANTI PAZIENTI HA ROSSI?", "How Many Patients Are There In Rome?", "ROSSI"])
def test_capitals_say_nothing_when_every_word_has_one(question):
    assert shape(question, (), "italian") == plain(question)


@pytest.mark.parametrize(
    ("question", "literal", "masked"),
    [
        ("how many in new york city?", ["new york", "new york city", "city"], "how many in #?"),
        ("how many in new york?", ["new york", "new york city", "york"], "how many in #?"),
        ("how many in new   york\ncity?", ["new york city"], "how many in #?"),
        ("in los angeles (ca) or so", ["Los Angeles (CA)"], "in #) or so"),
        ("do they pay by non-cash means?", ["NON-CASH"], "do they pay by # means?"),
        ("quanti a forlì?", ["FORLÌ"], "quanti a #?"),
        (unicodedata.normalize("NFD", "quanti a forlì?"), ["Forlì"], "quanti a #?"),
        ("quanti a forlì?", [unicodedata.normalize("NFD", "Forlì")], "quanti a #?"),
        ("quanti a forli?", ["forlì"], "quanti a forli?"),
        ("quanti a l’aquila e all'aquila?", ["L'Aquila", "Aquila"], "quanti a # e all'#?"),
        ("wie viele in der hauptstraße", ["HAUPTSTRASSE"], "wie viele in der #"),
        ("only _active_ ones", ["active"], "only _#_ ones"),
        ("actively active", ["active"], "actively #"),
        ("stati in_corso", ["corso"], "stati in_corso"),
    ],
)
def test_literals_are_masked_as_whole_words_the_longest_first(question, literal, masked):
    assert shape(question, {folded(each) for each in literal}, "german") == plain(masked)


@pytest.mark.parametrize("text", ["", " ", "a", "%", "___", "?!", "x" * 201, " ".join("abcdefghi")])
def test_what_no_question_could_name_is_no_literal(text):
    assert not could_be_named(folded(text))


@pytest.mark.parametrize("text", ["or", "x" * 200, " ".join("abcdefgh"), "%Rossi%", "(none)", "C'è", "हिन्दी"])
def test_what_could_be_named_is_a_phrase_of_the_question_that_names_it(text):
    literal = folded(text)
    assert could_be_named(literal)
    assert literal in phrases(f"quanti hanno {text}, e quanti no?")
    assert "#" in shape(f"quanti hanno {text}, e quanti no?", {literal}, "italian")


def test_phrases_are_runs_of_at_most_eight_words():
    assert phrases("Uno, due; tre") == {"uno", "due", "tre", "uno, due", "due; tre", "uno, due; tre"}
    assert max(len(words(phrase)) for phrase in phrases("a b c d e f g h i j k")) == 8


@given(st.text(max_size=80))
def test_every_phrase_begins_with_a_word_of_the_question_and_is_storable(question):
    # That is how the archive finds the questions which could name a literal.
    for phrase in phrases(question):
        assert words(phrase)[0] in words(question)
        assert "\x00" not in phrase
        phrase.encode()


@given(st.text(max_size=80), st.sampled_from(["italian", "german"]))
def test_any_text_has_a_shape_whichever_way_its_accents_are_written(question, language):
    masked = shape(question, phrases(question), language)
    assert masked == shape(unicodedata.normalize("NFD", question), phrases(question), language)
    assert "\x00" not in masked


@pytest.mark.parametrize("part", ["Quanti ha Rossi. ", "'", "«", "1", "a-1", "--", "1 a_", "A. "])
def test_of_a_text_of_a_million_characters_the_beginning_is_read(part):
    question = part * (HUGE // len(part))
    read = question[:READ_AT_MOST]
    assert (phrases(question), words(question)) == (phrases(read), words(read))
    assert shape(question, phrases(question), "italian") == shape(read, phrases(read), "italian")
