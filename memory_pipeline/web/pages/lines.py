"""Names in a field of many lines, one a line, and dotted ones; a name with a dot or a line end is quoted, as in SQL.

    dm.fact_visite
    dm."visite.2024"

White space around a name is not part of it, and blank lines say nothing.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

_NEVER = "\x1f"  # stands in no name that a form can hold


def lines_of(names: Iterable[str]) -> str:
    """The names, one a line."""
    return _written([[name] for name in names], _NEVER)


def read_lines(text: str) -> list[str]:
    """The names of the lines.

    Raises:
        ValueError: a quotation does not end.
    """
    return [name for parts in _read(text, _NEVER) if (name := "".join(parts).strip())]


def dotted_lines(names: Iterable[Sequence[str]]) -> str:
    """Names of several levels, the innermost last, one a line; outer levels that are empty are left out."""
    return _written([_without_empty_outer(levels) for levels in names], ".")


def read_dotted(text: str, levels: Sequence[str]) -> list[dict[str, str]]:
    """Level → name of each line, the innermost level last.

    Raises:
        ValueError: a line has more names than there are levels, or a quotation does not end.
    """
    found = []
    for parts in _read(text, "."):
        if len(parts) > len(levels):
            shown = ".".join(parts)[:80]
            raise ValueError(f"{shown!r} has more than {len(levels)} names: put one that holds dots in double quotes")
        found.append(dict(zip(levels[-len(parts) :], map(str.strip, parts), strict=True)))
    return found


def _written(rows: Iterable[Sequence[str]], separator: str) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=separator, lineterminator="\n").writerows(rows)
    return out.getvalue().removesuffix("\n")


def _read(text: str, separator: str) -> list[list[str]]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        return [parts for parts in rows if any(part.strip() for part in parts)]
    except csv.Error:
        raise ValueError("a name is longer than any, or its double quotes do not end: write two inside it") from None


def _without_empty_outer(levels: Sequence[str]) -> Sequence[str]:
    first = next((number for number, name in enumerate(levels) if name), len(levels) - 1)
    return levels[first:]
