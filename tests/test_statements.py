"""What two cards have to share to be proposed for merging, and what must not differ between them."""

from __future__ import annotations

import base64
import math
from collections import defaultdict

import pytest

from memory_pipeline.errors import InvalidSettings
from memory_pipeline.statements import LONGEST, LONGEST_WORD, Reader, Weights, likeness

ITALIAN, ENGLISH = Reader("italian"), Reader("english")
EVERY_TERM_COUNTS = Weights(defaultdict(lambda: 1.0), light=0.0)
NONE_COUNTS_MUCH = Weights(defaultdict(lambda: 1.0), light=math.inf)


def both(one, other, reader=ITALIAN):
    return reader.statement(*_parts(one)), reader.statement(*_parts(other))


def _parts(text: str) -> tuple[str, str]:
    """`subject | detail`, or a detail alone."""
    subject, bar, detail = text.partition(" | ")
    return (subject, detail) if bar else ("", subject)


def same_but_for_form(one, other, reader=ITALIAN) -> bool:
    first, second = both(one, other, reader)
    return first.form == second.form


def alike(one, other, reader=ITALIAN, weights=EVERY_TERM_COUNTS) -> float:
    return likeness(*both(one, other, reader), weights)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("paziente attivo | flag_attivo = TRUE", "Paziente attivo | flag_attivo  =  true"),
        ("paziente attivo | flag_attivo = TRUE", "paziente attivo | paziente attivo: flag_attivo = TRUE"),
        ("paziente attivo | flag_attivo = TRUE", "PAZIENTE ATTIVO | «paziente attivo» (`flag_attivo`=TRUE)."),
        ("attivo | chi è attivo ha flag_attivo", "è attivo | chi è attivo ha flag_attivo"),
        ("età | età >= 65", "eta' | eta' > = 65"),
        ("età | età ≥ 65", "età | età >= 65"),
        ("diverso | stato <> 'A'", "diverso | stato ≠ “A”"),
        ("esito | esito = '-'", "esito | esito = ' - '"),
        ("sesso | sesso = 'F'", "sesso | sesso = F'"),
        ("l'anno | l'anno di ricovero", "l’anno | l´anno di ricovero"),
        ("non-fumatore | fumo = 'N'", "non fumatore | fumo = 'N'"),
        ("codice | codice (ICD-9) 250", "codice | codice ICD-9: 250"),
        ("area | x² in ㎡", "area | x^2 in m²"),
        ("gas | CO₂, 10³/µL", "gas | CO2, 10^3/μL"),
        ("regime | regime = 'RO'", 'Regime | «regime» = "RO"'),
        ("attivo | 'Paziente' attivo: TRUE", "attivo | paziente attivo: 'true'"),
    ],
)
def test_what_differs_in_form_alone(one, other):
    assert same_but_for_form(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("età | eta >= 65", "età | eta < 65"),
        ("età | eta >= 65", "età | eta > 65"),
        ("età | eta >= 65", "età | eta >= 75"),
        ("peso | peso > 1.5", "peso | peso > 15"),
        ("delta | delta = -1", "delta | delta = 1"),
        ("esito | esito = '-'", "esito | esito = '+'"),
        ("segno | segno = ','", "segno | segno = ';'"),
        ("vuoto | nome = ''", "vuoto | nome"),
        ("stato | stato = 'A'", "stato | stato = 'B'"),
        ("stato | stato = 'A'", "stato | stato_paziente = 'A'"),
        ("stato | stato = 'A'", "stato | stato != 'A'"),
        ("nome | nome like '%rossi%'", "nome | nome like 'rossi'"),
        ("fumatore | fumo = 'N'", "non fumatore | fumo = 'N'"),
        ("decesso | data_decesso is null", "decesso | data_decesso is not null"),
        ("complicanze | senza complicanze", "complicanze | con complicanze"),
        ("dose | dose in mg", "dose | dose in µg"),
        ("ultimo | MAX(data)", "ultimo | MIN(data)"),
        ("media | AVG(giorni)", "media | SUM(giorni)"),
        ("quota | (a + b) * c", "quota | a + b * c"),
        ("filtro | a = 1 and (b = 2 or c = 3)", "filtro | (a = 1 and b = 2) or c = 3"),
        ("trasferito | da cardiologia a chirurgia", "trasferito | da chirurgia a cardiologia"),
        ("differenza | ingresso - dimissione", "differenza | dimissione - ingresso"),
        ("quota | DIVIDE(attivi, tutti)", "quota | DIVIDE(tutti, attivi)"),
        ("pressione | sistolica > diastolica", "pressione | diastolica > sistolica"),
        ("gruppo | a = 1 or b = 2", "gruppo | a = 1 and b = 2"),
        ("aritmia | fibrillazione o flutter", "aritmia | fibrillazione e flutter"),
        ("tipo | urgente è tipo = 'U'", "tipo | programmato è tipo = 'U'"),
        ("nome | pazienti.nome", "nome | nome"),
        # The same figures, letters, identifiers or words, which belong to others.
        ("sesso | 1: maschio, 2: femmina", "sesso | 2: maschio, 1: femmina"),
        ("sesso | 1: maschio, 2: femmina", "sesso | maschio: 2, femmina: 1"),
        ("esito | 0 (negativo) e 1 (positivo)", "esito | 1 (negativo) e 0 (positivo)"),
        ("sesso | M per maschio e F per femmina", "sesso | F per maschio e M per femmina"),
        ("pressione | sistolica 140 e diastolica 90", "pressione | sistolica 90 e diastolica 140"),
        ("rischio: LDL 100; rischio alto: LDL 70", "rischio: LDL 70; rischio alto: LDL 100"),
        ("tipo | U urgente, B breve", "tipo | B urgente, U breve"),
        ("tipo | U indica urgente, B indica breve", "tipo | B indica urgente, U indica breve"),
        ("classe | A alta. I interna.", "classe | I alta. A interna."),
        ("A: 1, B: 2, C: 1", "A: 1, B: 2, C: 2"),
        (
            "data | data_ingresso per i ricoveri, data_accesso per il PS",
            "data | data_accesso per i ricoveri, data_ingresso per il PS",
        ),
        ("terapia | 6 mesi di terapia in 12 pazienti", "terapia | 12 mesi di terapia in 6 pazienti"),
        ("il paziente rifiuta il medico", "il medico rifiuta il paziente"),
        ("il medico rappresenta il paziente", "il paziente rappresenta il medico"),
        ("data di ingresso | giorni, ingresso, dimissione", "data di dimissione | giorni, ingresso, dimissione"),
        ("rischio 100 | LDL 100, alto 70", "rischio 70 | LDL 100, alto 70"),
        # Other words with the same stem.
        *(("Operato", "Operatore"), ("Operato", "Operazione"), ("Operatore", "Operazione"), ("Parto", "Parte")),
        *(("Testa", "Testo"), ("Ferito", "Ferita"), ("Feriti", "Ferite")),
        # Raised figures, and others that are written as one sign.
        *(("dose | 10³/µL", "dose | 103/µL"), ("area | x²", "area | x2"), ("quota | 1½", "quota | 11⁄2")),
        *(("scala | log₂8", "scala | log28"), ("area | ㎡", "area | m2")),
        # SQL compares text by its case.
        ("regime | regime = 'RO'", "regime | regime = 'ro'"),
        ("regime | regime in ('RO', 'DH')", "regime | regime in ('RO', 'dh')"),
        ("regime | regime = 'Ordinario'", "regime | regime = 'ordinario'"),
        ("regime | 'RO' è il ricovero", "regime | 'ro' è il ricovero"),
    ],
)
def test_what_turns_the_meaning_is_neither_form_nor_near_even_where_every_word_is_common(one, other):
    assert not same_but_for_form(one, other)
    assert alike(one, other, weights=NONE_COUNTS_MUCH) == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("paziente attivo | flag_attivo = TRUE", "paziente attivo | flag_attivo = TRUE and data_fine IS NULL"),
        ("adulto | paziente con eta >= 18", "adulto | paziente ambulatoriale con eta >= 18"),
        ("reingresso | ricovero dopo la dimissione", "reingresso | ricovero urgente dopo la dimissione"),
        ("urgente | arriva dal pronto soccorso", "urgente | arriva dal pronto soccorso di notte"),
    ],
)
def test_a_general_rule_and_a_more_specific_one_are_two(one, other):
    assert not same_but_for_form(one, other)
    assert alike(one, other) == 0 == alike(other, one)


@pytest.mark.parametrize(
    ("one", "other", "reader"),
    [
        ("urgente | urgente significa tipo = 'U'", "urgente | tipo = 'U'", ITALIAN),
        (
            "ablazione | codice procedura 37.34",
            "ablazione | per ablazione si intende il codice procedura 37.34",
            ITALIAN,
        ),
        ("non fumatore | fumo = 'N'", "fumo | fumo = 'N' indica i non fumatori", ITALIAN),
        ("degenza | giorni dall'ingresso", "degenza | il giorno d'ingresso", ITALIAN),
        ("operatori | gli operatori sanitari", "operatore | operatore sanitario", ITALIAN),
        ("deceduto | paziente deceduto: stato = 'D'", "deceduto | pazienti deceduti: stato = 'D'", ITALIAN),
        ("deceduti | paziente deceduto: stato = 'D'", "paziente deceduto | stato = 'D'", ITALIAN),
        ("aritmia | fibrillazione o flutter", "aritmia | flutter o fibrillazione", ITALIAN),
        ("chiuso | stato chiuso significa stato = 'chiuso'", "chiuso | chiuso significa stato = 'chiuso'", ITALIAN),
        ("rays | X-ray and studies", "ray | an X-ray and the study", ENGLISH),
        ("urgent | kind = 'u' means urgent", "urgent | urgent refers to kind = 'u'", ENGLISH),
        ("open | ward = '*' or end is null", "open | end IS NULL or ward = '*'", ENGLISH),
        ("alone | doesn't have relatives", "alone | do not have relatives", ENGLISH),
        ("ward | W7 contains the ward names", "ward | W7 stands for the ward name", ENGLISH),
        ("equal | 'a' = kind", "equal | kind = 'a'", ENGLISH),
    ],
)
def test_what_says_the_same_in_other_words_is_near(one, other, reader):
    assert not same_but_for_form(one, other, reader)
    assert alike(one, other, reader) == alike(other, one, reader) == 1


def test_a_term_that_one_alone_has_counts_by_its_weight_where_it_is_common():
    pair = both("urgente | tipo = 'u'", "urgente | ricovero urgente: tipo = 'u'")
    weights = Weights(defaultdict(lambda: 4.0), light=1.0)
    assert likeness(*pair, weights) == 0
    [extra] = pair[1].terms - pair[0].terms
    weights.of[extra] = 1.0
    assert likeness(*pair, weights) == pytest.approx(len(pair[0].terms) * 4 / (len(pair[0].terms) * 4 + 1))


def test_of_a_language_without_a_list_of_hollow_words_every_stop_word_counts():
    german = Reader("german")
    assert alike("Patient | der Patient mit Status = 'A'", "Patient | Patient mit Status = 'A'", german) == 0
    assert alike("aktiv | nicht entlassen", "aktiv | entlassen", german) == 0
    assert same_but_for_form("aktiv | Status = 'A'", "Aktiv | status='A'", german)


def test_a_very_long_text_is_compared_but_for_form_alone():
    words = " ".join(f"parola{n}" for n in range(LONGEST))
    one, other = both(f"{words} fine", f"{words}  «Fine».")
    assert one.form == other.form
    assert not one.terms
    assert likeness(one, other, EVERY_TERM_COUNTS) == 0


LONG_WORDS = {
    "base64": base64.b64encode(bytes(range(256)) * 120).decode(),
    "letters": "a" * 25_000,
    "underscores": "_" * 20_000,
    "digits": "1" * 20_000,
}


@pytest.mark.parametrize("word", LONG_WORDS.values(), ids=LONG_WORDS)
def test_a_very_long_word_is_compared_but_for_form_alone(word):
    one, other = both(f"dato | {word} fine", f"Dato | «{word}»  fine.")
    assert one.form == other.form
    assert not one.terms


def test_a_very_long_word_is_not_looked_at_closely():
    reader = Reader("italian")
    reader.statement("dato", "a" * 1_000_000)
    assert max(map(len, reader._known)) <= LONGEST_WORD


@pytest.mark.parametrize(
    "text",
    [
        "1.1" * 20_000,
        "1.1." * 9_000 + "x",
        "'" + " " * 20_000,
        "' '" * 20_000,
        "a." * 20_000,
        "a(b " * 20_000,
        "." * 40_000 + "a B",
    ],
)
def test_no_pattern_begins_anew_at_every_character(text):
    assert ITALIAN.statement("dato", text).form


@pytest.mark.parametrize("text", ["", "?", "''", "()", " . ", "=", "a" * 10_000, "-\u0338", "ﬁ½²\U0001f600", "x = "])
def test_any_text_has_a_statement(text):
    assert ITALIAN.statement(text, text).form
    assert same_but_for_form(f"{text} | {text}", f"{text} | {text}")


def test_a_language_that_is_not_supported_is_refused():
    with pytest.raises(InvalidSettings):
        Reader("klingon")
