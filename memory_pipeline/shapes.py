"""The shape of a question: what is left of it when the values that it asks about are masked (pure).

"How many ablations in 2023?" and "How many biopsies in 2021?" are answered by nearly the same SQL. What is a value is
told by the question's own form (quotes, numbers, codes, names), and by the SQL of the workspace's solved questions: a
text that some SQL compares a column with is a value wherever it is asked about.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from memory_pipeline.text import bare, readable
from memory_pipeline.turning import turns

MASK = "#"

_WORDS_AT_MOST = 8  # of a literal: nobody asks for a longer one word for word
_READ_AT_MOST = 4_000  # characters of a question: a model reads no more of it, and masking takes time
_LONGEST_LITERAL = 200  # characters
_QUOTED = re.compile(
    r"(?<!\w)'[^']*'(?!\w)"  # and no apostrophes, as in "l'età dell'utente"
    r"|(?<!\w)‘[^‘’]*’(?!\w)|‚[^‘’]*[‘’]"
    r"|\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|»[^«]*«|‹[^›]*›|`[^`]*`"
)
_CODE = re.compile(r"\b\w*\d\w*(?:[.,:/-]\w*\d\w*)*\b")
_SIGN = re.compile(r"[^\W_]")
_WORD = re.compile(r"[^\W_]+(?:_+[^\W_]+)*")  # flag_attivo is one
_NAME = re.compile(r"(?<!\w)[^\W\d_]{2,}(?!\w)")
_OPENS_SENTENCE = " \t\"'‘“„«»‹(¿¡-–—•*"  # what may stand before the first word of one
_ENDS_SENTENCE = ".?!:…\n"
# After which no sentence begins: a title, or the initial of a name.
_ABBREVIATED = re.compile(
    r"\b(?:[^\W\d_]|arch|avv|dott|dr|fr|geom|ing|mme|mr|mrs|ms|prof|rag|rev|sig|sigg|sr|sra|st)\.$", re.IGNORECASE
)
_LONGEST_ABBREVIATION = 8  # characters, with what stands before it
_CAPITALIZED_NOUNS = frozenset({"german"})
# Where months and days are written without capitals, nothing else shows that they are values.
_CALENDAR = {
    "italian": "gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre|"
    "lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica",
}


def words(text: str) -> list[str]:
    """The words of a text, folded, in their order; each phrase of it begins with one of them."""
    return _WORD.findall(folded(text))


def phrases(question: str) -> frozenset[str]:
    """Whatever in a question could be a literal: its words and runs of words, folded."""
    text = folded(question)
    found = list(_WORD.finditer(text))
    return frozenset(
        text[first.start() : last.end()]
        for position, first in enumerate(found)
        for last in found[position : position + _WORDS_AT_MOST]
    )


def folded(text: str) -> str:
    """The text as it is compared: in NFC, without case, on one line, from its first letter or figure to its last.

    Of a very long one the beginning.
    """
    on_one_line = bare(_read(text).casefold().replace("’", "'"))
    first, last = _SIGN.search(on_one_line), _SIGN.search(on_one_line[::-1])
    return on_one_line[first.start() : len(on_one_line) - last.start()] if first and last else ""


def could_be_named(literal: str) -> bool:
    """Whether a literal, folded, is one of the phrases that some question could have."""
    return 1 < len(literal) <= _LONGEST_LITERAL and len(_WORD.findall(literal)) <= _WORDS_AT_MOST


def shape(question: str, literals: Collection[str], language: str) -> str:
    """The question with its values masked, so that its form can be compared. Of a very long one the beginning.

    It begins with a capital, and has no end marks.

    Args:
        question: as it is asked or stored.
        literals: those of the workspace's SQL that are among its `phrases`.
        language: Snowball's name. Where it writes nouns with capitals, a capital makes no name.
    """
    masked = _QUOTED.sub(MASK, _read(question))
    masked = _without_literals(masked, literals)
    masked = _CODE.sub(MASK, masked)
    if language in _CALENDAR:
        masked = re.sub(rf"\b(?:{_CALENDAR[language]})\b", MASK, masked, flags=re.IGNORECASE)
    masked = masked if language in _CAPITALIZED_NOUNS else _without_names(masked, language)
    return _written_alike(bare(masked) or masked)


def _written_alike(text: str) -> str:
    """The text as a sentence begins, and without capitals where there is nothing else."""
    text = text if any(map(str.islower, text)) else text.casefold()
    return text[:1].upper() + text[1:]


def _read(text: str) -> str:
    return readable(text)[:_READ_AT_MOST]


def _without_literals(question: str, literals: Collection[str]) -> str:
    """The longest literal wherever one begins, from left to right."""
    at_most = max((len(_WORD.findall(literal)) for literal in literals), default=0)
    found, parts, done, position = list(_WORD.finditer(question)), [], 0, 0
    while position < len(found):
        start = found[position].start()
        longest = next(
            (
                last
                for last in reversed(range(position, min(position + at_most, len(found))))
                if folded(question[start : found[last].end()]) in literals
            ),
            None,
        )
        if longest is not None:
            parts += [question[done:start], MASK]
            done, position = found[longest].end(), longest
        position += 1
    return "".join([*parts, question[done:]])


def _without_names(question: str, language: str) -> str:
    """Words with a capital within a sentence, and words in capitals. If every word has one, it says nothing.

    Capitals stress, too: "pazienti SENZA diabete" is not asked of those with it, nor the MIN instead of the MAX.
    """
    if not any(word.islower() for word in _NAME.findall(question)):
        return question

    def masked(word: re.Match[str]) -> str:
        text = word.group()
        name = text[0].isupper() and text[1:].islower() and not _begins_sentence(question, word.start())
        return MASK if (name or text.isupper()) and not turns(text, language) else text

    return _NAME.sub(masked, question)


def _begins_sentence(text: str, position: int) -> bool:
    before = text[:position].rstrip(_OPENS_SENTENCE)
    return not before or (before[-1] in _ENDS_SENTENCE and not _ABBREVIATED.search(before[-_LONGEST_ABBREVIATION:]))
