"""Normalizes text: the one place that says which spellings are equal."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_WHITE_SPACE = re.compile(r"\s+")
_ENDS = " .,;:!?'\"`´‘’‚‛“”„‟«»‹›"
_SURROGATE = re.compile("[\ud800-\udfff]")
_SEPARATOR = "\x1f"


def nfc(text: str) -> str:
    """The text in Unicode's composed form, in which it is compared and indexed."""
    return unicodedata.normalize("NFC", text)


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
    if "\x00" in text:
        return "it holds a NUL byte"
    if _SURROGATE.search(text):
        return "it holds a lone surrogate"
    return None


def _folded(text: str) -> str:
    # Case folding can take a text out of NFC, hence twice. A text of nothing but punctuation keeps it: "?" is not "!".
    folded = _WHITE_SPACE.sub(" ", nfc(nfc(text).casefold())).strip()
    return folded.strip(_ENDS) or folded
