"""Fits texts into cells of a terminal, whatever characters they are made of; it draws nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len, get_character_cell_size, set_cell_size

from memory_pipeline.console import printable

_TAB = 4  # cells
CROWD = 4  # characters for each cell of a line; what combines without end goes on in the next line
# Terminals disagree about the width of what these join. Without them it stands side by side, and nothing is cut off.
_JOINERS = re.compile("[\u200d\ufe0e\ufe0f]")


def shown(text: str) -> str:
    """The text as it is shown, with its line breaks."""
    return _JOINERS.sub("", printable(text.replace("\r\n", "\n").expandtabs(_TAB)))


def fitted(text: str, width: int) -> str:
    """The text in one line of exactly this width, with an ellipsis where it goes on."""
    if width <= 0:
        return ""
    line = text[: width * CROWD].replace("\n", " ")
    if len(line) == len(text) and cell_len(line) <= width:
        return set_cell_size(line, width)
    return set_cell_size(set_cell_size(line, width - 1) + "…", width)


def wrapped(text: str, width: int) -> Iterator[tuple[int, str]]:
    """The lines of a text at a width, each with where in the text it begins."""
    start = 0
    for line in text.split("\n"):
        if len(line) <= width and line.isascii():
            yield start, line
        else:
            fold = _folded_ascii if line.isascii() else _folded
            yield from ((start + offset, part) for offset, part in fold(line, width))
        start += len(line) + 1


def _folded_ascii(line: str, width: int) -> Iterator[tuple[int, str]]:
    """What `_folded` gives where every character is one cell wide, many times faster."""
    for match in re.finditer(f"(.{{1,{width}}})(?: |$)|(.{{{width}}})", line):
        yield match.start(), match[1] or match[2]


def _folded(line: str, width: int) -> Iterator[tuple[int, str]]:
    """The parts of a line that fit; it is parted at spaces, of which one goes, or else anywhere."""
    start = 0
    while start < len(line):
        end = _end_of_cells(line, start, width)
        following = end
        if end < len(line) and (space := line.rfind(" ", start + 1, end + 1)) > 0:
            end, following = space, space + 1
        yield start, line[start:end]
        start = following


def _end_of_cells(line: str, start: int, width: int) -> int:
    cells = 0
    end = min(len(line), start + width * CROWD)
    for index in range(start, end):
        cells += get_character_cell_size(line[index])
        if cells > width:
            return max(index, start + 1)
    return end
