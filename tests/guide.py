"""The guides as tests read them: what their sections say, and the commands that they give."""

from __future__ import annotations

import re
from pathlib import Path

_DOCS = Path(__file__).resolve().parents[1] / "docs"
_PROGRAMS = (
    "memory-pipeline ",
    "tar ",
    "mkdir ",
    "mv ",
    "cp ",
    "BIN=",
    "$BIN/",
    "pg_dump ",
    "pg_restore ",
    "(umask ",
    "docker ",
)


def section(title: str, guide: str = "operations") -> str:
    """What stands under a heading, of whatever depth, up to the next one of the same or a lower depth."""
    text = (_DOCS / f"{guide}.md").read_text(encoding="utf-8")
    found = re.search(rf"^(#+) {re.escape(title)}\n", text, re.MULTILINE)
    assert found, title
    after = text[found.end() :]
    following = re.search(rf"^#{{1,{len(found[1])}}} ", after, re.MULTILINE)
    return after[: following.start()] if following else after


def commands(title: str, guide: str = "operations") -> list[str]:
    """The lines of a section that are to be typed in a shell, in their order."""
    lines = re.findall(r"^ {4,}(\S.*)$", section(title, guide), re.MULTILINE)
    return [re.sub(r" +# .*", "", line) for line in lines if line.startswith(_PROGRAMS)]
