"""Words that turn a meaning round, which nothing may overlook that tells what is nearly the same."""

from __future__ import annotations

from memory_pipeline.lexical import lexicon
from memory_pipeline.text import accentless

_WORDS = (
    "not non no or o oppure without never none neither nor except excluding excluded least most until since within "
    "beyond first last maximum minimum max min average avg sum total count number median highest lowest percentage "
    "rate senza mai nessuno nessuna nessun neppure privo priva tranne eccetto escluso esclusa esclusi escluse almeno "
    "oltre fino entro prima dopo solo soltanto primo ultimo ultima massimo massima minimo minima medio media mediana "
    "somma totale numero conteggio percentuale tasso"
)
TURNING = frozenset(accentless(_WORDS).split())
"""Besides the stop words of a language, many of which do so too: not, only, more, con, senza."""


def turns(word: str, language: str) -> bool:
    """Whether a word may turn a meaning round, or says nothing by itself, so that it is no value.

    Args:
        word: one word, in any case.
        language: Snowball's name.
    """
    return accentless(word) in TURNING or not lexicon(language).query(word)
