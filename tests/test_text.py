"""Which spellings are equal, and which texts can be stored."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memory_pipeline.text import accentless, digest, equality_key, nfc, storable_fault

TEXTS = st.text()
ENDS = st.text(alphabet=" \t\n.,;:!?'\"`´‘’“”«»", max_size=5)


@given(TEXTS)
def test_composition_makes_no_difference(text):
    forms = ("NFC", "NFD")
    assert {equality_key(unicodedata.normalize(form, text)) for form in forms} == {equality_key(text)}


@given(TEXTS)
def test_case_makes_no_difference(text):
    assert equality_key(nfc(text).casefold()) == equality_key(text)


@given(st.text(alphabet=st.characters(categories=["Lu", "Ll"], max_codepoint=0x24F)))
def test_capitals_make_no_difference(text):
    assume(text.upper().casefold() == text.casefold())  # the Turkish dotless i has no capital of its own
    assert equality_key(text.upper()) == equality_key(text)


@given(ENDS, st.text(alphabet="ab<>=% 19.", min_size=1), ENDS)
def test_white_space_quotes_and_punctuation_at_the_ends_make_no_difference(before, text, after):
    assume(text.strip(" ."))
    assert equality_key(before + text + after) == equality_key(text)


@given(
    st.lists(st.text(alphabet="abc", min_size=1), min_size=1),
    st.sampled_from([" ", "  ", "\t", "\n", "\u00a0", "\r\n"]),
)
def test_the_kind_and_amount_of_white_space_makes_no_difference(words, space):
    assert equality_key(space.join(words)) == equality_key(" ".join(words))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (">= 140", "< 140"),
        (">= 140", "140"),
        ("(a)", "a"),
        ("-1", "1"),
        ("a b", "ab"),
        ("a.b", "a b"),
        ("10 %", "10"),
        ("flag = TRUE", "flag = FALSE"),
        ("però", "pero"),
        ("ﬁve²", "five2"),
        ("?", "!"),
        ("?", ""),
    ],
)
def test_nothing_else_is_equal(one, other):
    assert equality_key(one) != equality_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("«Paziente attivo»", "paziente  attivo."),
        ("„Straße“", "STRASSE"),
        ("‹a›", "a"),
        ("perche\u0301", "PERCH\u00c9"),
        ("'flag_attivo = TRUE';", "flag_attivo = true"),
    ],
)
def test_what_a_reader_takes_for_the_same_is_equal(one, other):
    assert equality_key(one) == equality_key(other)


@pytest.mark.parametrize(
    ("text", "plain"), [("Età", "eta"), ("e\u0301", "e"), ("ﬁ²", "fi2"), ("Straße", "strasse"), ("≠", "=\u0338")]
)
def test_a_text_without_accents_is_plain_and_keeps_its_signs(text, plain):
    assert accentless(text) == plain


@given(st.lists(TEXTS, max_size=3), st.lists(TEXTS, max_size=3))
def test_parts_are_compared_one_by_one(one, other):
    assume([equality_key(part) for part in one] != [equality_key(part) for part in other])
    assert equality_key(*one) != equality_key(*other) or not (one and other)


def test_a_part_does_not_flow_into_the_next():
    assert equality_key("a", "b") != equality_key("ab", "")
    assert equality_key("a\x1f", "b") == equality_key("a", "b")  # a separator is white space
    assert equality_key("a\x1fb", "") != equality_key("a", "b")


def test_a_long_text_has_a_key_of_the_usual_length():
    assert len(equality_key("à b " * 2_500_000)) == 64


def test_a_digest_tells_every_spelling_apart():
    assert digest("a") != digest("A")
    assert len(digest()) == 64


@pytest.mark.parametrize(
    ("text", "fault"), [("a", None), ("", None), ("😀", None), ("a\x00", "a NUL byte"), ("\ud800", "a lone surrogate")]
)
def test_what_postgresql_cannot_store_is_named(text, fault):
    found = storable_fault(text)
    assert found is None if fault is None else fault in found
