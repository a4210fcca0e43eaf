"""Whole numbers as forms and addresses hold them."""

from __future__ import annotations

from memory_pipeline.errors import InvalidInput

_DIGITS = 9  # beyond any version, page or limit, and within what PostgreSQL counts


def whole(name: str, text: object) -> int:
    """The number that a text says.

    Raises:
        InvalidInput: it says none.
    """
    said = text.strip() if isinstance(text, str) else ""
    if not said.isascii() or not said.isdigit() or len(said) > _DIGITS:
        raise InvalidInput(f"{name}: has to be a whole number")
    return int(said)
