"""Normalizes text: the one place that says which spellings are equal."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_WHITE_SPACE = re.compile(r"\s+")
_ENDS = " .,;:!?'\"`´‘’‚‛“”„‟«»‹›"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # NUL bytes and lone surrogates
_ACCENT = re.compile("[\u0300-\u0337\u0339-\u036f]")  # not the stroke: it makes another sign, ≠ of =
_SEPARATOR = "\x1f"


def nfc(text: str) -> str:
    """The text in Unicode's composed form, in which it is compared and indexed."""
    return unicodedata.normalize("NFC", text)


def bare(text: str) -> str:
    """The text in NFC on one line, without white space, quotes and `. , ; : ! ?` at both ends."""
    return _on_one_line(text).strip(_ENDS)


def readable(text: str) -> str:
    """The text in NFC, with a space for every NUL byte and every lone surrogate.

    A NUL byte ends a text for an engine written in C, and a lone surrogate cannot be encoded at all. Questions come
    from anywhere, and are not worth an exception for either.
    """
    return nfc(_UNSTORABLE.sub(" ", text))


def accentless(text: str) -> str:
    """The text without case and accents, in the plain spelling of what Unicode spells in several ways (`ﬁ`, `²`)."""
    return _ACCENT.sub("", unicodedata.normalize("NFKD", text)).casefold()


def equality_key(*parts: str) -> str:
    """A hash that is equal for texts that count as equal (hexadecimal SHA-256, 64 characters).

    Equal means: the same after NFC, case folding, collapsing white space, and dropping white space, quotes and
    `. , ; : ! ?` at both ends of each part, and nothing else: `>= 140` is not `< 140`.
    """
    return digest(*(_folded(part) for part in parts))


def digest(*parts: str) -> str:
    """Hexadecimal SHA-256 of the parts, exactly as they are written."""
    return hashlib.sha256(_SEPARATOR.join(parts).encode()).hexdigest()


def storable_fault(text: str) -> str | None:
    """Why PostgreSQL cannot store this text, or None when it can."""
    if _UNSTORABLE.search(text) is None:
        return None
    return "it holds a NUL byte" if "\x00" in text else "it holds a lone surrogate"


def _folded(text: str) -> str:
    # Case folding can take a text out of NFC, hence twice. A text of nothing but punctuation keeps it: "?" is not "!".
    folded = nfc(text).casefold()
    return bare(folded) or _on_one_line(folded)


def _on_one_line(text: str) -> str:
    return _WHITE_SPACE.sub(" ", nfc(text)).strip()
