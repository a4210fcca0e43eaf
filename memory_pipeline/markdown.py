"""Writes any text as Markdown that shows just this text. Pure.

By CommonMark and GitHub's extensions (tables, strikethrough, autolinks, task lists, footnotes), with math and emoji
names besides. Only what could have a meaning is escaped, so that ordinary text stays readable as it is written:
`flag_attivo = TRUE, età >= 18` is written as it is. Whether a sign has a meaning is told from its neighbours alone,
and at both ends the worst is assumed: what stands before and after the text is not known here.

What a site makes of the finished page is out of reach: GitHub links names, issue numbers and mail addresses, and puts
pictures for the names of emoji, whether they were escaped or not.
"""

from __future__ import annotations

import re
import unicodedata

_WHITE_SPACE = re.compile(r"\s+")

# A selector chooses one of the forms of the character before it, and a joiner makes one sign of two (emoji, Persian,
# the scripts of India). They say something there and nothing in a plain word, where they would only hide.
_SELECTOR = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_JOINER = "\u200c\u200d"
# What Unicode says is shown as nothing (Default_Ignorable_Code_Point: zero widths, directions, fillers, tags), control
# characters, annotations between the lines, and halves of characters, which cannot be encoded.
_INVISIBLE = (
    "\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\ud800-\udfff"
)
_FOREIGN = rf"[^\x00-\x7f\s{_INVISIBLE}]"
_SHOWN_OR_HIDDEN = re.compile(
    rf"({_FOREIGN}[{_SELECTOR}]?(?:[{_JOINER}](?={_FOREIGN}))?|[0-9\#*]\ufe0f(?=\u20e3))|[{_INVISIBLE}]"
)
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_ASCII_PUNCTUATION = r"!-/:-@\[-`{-~"
_MEANT = re.compile(
    rf"""
      (?P<number> \A[0-9]{{1,9}}[.)](?=\ |\Z) )  # a numbered list
    | (?P<run> \*+ | _+ | ~+ )                   # emphasis, strikethrough, fences, rules: see _means_nothing
    | [`$\[|]                                    # code, math, links and footnotes and tasks, cells
    | \\(?=[{_ASCII_PUNCTUATION}]|\Z)            # an escape; at the end, one of whatever follows
    | <(?=[a-z/!?]|\Z)                           # HTML, and links in angle brackets
    | &(?=\#?[0-9a-z]+;)                         # an entity
    | @(?=\w)                                    # a mail address, a name
    | (?<=:)/(?=/) | (?<![^\W_])/(?=/\S)         # http://…, and //… on its own
    | (?<![^\W_]www)(?<=www)\.                   # www.…
    | :(?=(?:[0-9_+-]*[a-z][a-z0-9_+-]*|[+-]1|100|1234):)  # an emoji's name
    | \A>                                        # a quotation
    | \A[+-](?=\ |\Z)                            # a list
    | \A-(?=[\ -]*:?\Z) | \A:(?=-+:?\Z)          # a rule, a heading's underline, the line below a table's head
    | \A=(?==*\Z)                                # a heading's underline
    | \A\#(?=\#{{0,5}}(?:\ |\Z))                 # a heading
    | (?<=\ )\#(?=\#*\Z)                         # what closes a heading, and is not shown
    """,
    re.VERBOSE | re.IGNORECASE,
)


def inline(text: str) -> str:
    """One line of Markdown that shows this text, in a paragraph, a list's item, a heading or a table's cell.

    White space and line breaks become single spaces. What cannot be seen becomes "�": control characters, directions,
    characters without width. Were it dropped, two texts that differ would look equal; kept, it could show another order
    than the one that is written. Only where a joiner or selector belongs to a character that is not ASCII, it stays.
    Nothing is composed or decomposed.

    It is not made for the text of a link: a `]` stays as it is.
    """
    return _MEANT.sub(_escape, _shown(text))


def block(text: str, indent: str = "") -> str:
    """Lines of Markdown that show this text as one paragraph, with a hard break for each of its line breaks.

    Each line is made as `inline` makes one, so white space at its beginning is lost. Blank lines stay, but for those
    at both ends, where there is nothing to break.

    Args:
        text: any text.
        indent: stands before every line but the first, whose place the caller chooses: `f"- {block(text, '  ')}"`.
    """
    return f"\\\n{indent}".join(inline(line) for line in _without_blank_ends(text.splitlines()))


def _shown(text: str) -> str:
    one_line = _WHITE_SPACE.sub(" ", text).strip()
    return _SHOWN_OR_HIDDEN.sub(lambda found: found[1] or _REPLACEMENT, one_line)


def _without_blank_ends(lines: list[str]) -> list[str]:
    filled = [number for number, line in enumerate(lines) if line.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def _escape(found: re.Match[str]) -> str:
    if found["number"]:
        return f"{found[0][:-1]}\\{found[0][-1]}"
    if found["run"] and _means_nothing(found):
        return found[0]
    return "".join(f"\\{sign}" for sign in found[0])


def _means_nothing(run: re.Match[str]) -> bool:
    """Whether a run of `*`, `_` or `~` can neither open nor close anything: between spaces, or an underscore in a word.

    What is a word's is told narrowly, as versions of CommonMark differ in what is punctuation.
    """
    text, start, end = run.string, run.start(), run.end()
    before, after = text[max(start - 1, 0) : start], text[end : end + 1]
    if before == after == " ":
        return True
    return run[0][0] == "_" and _in_word(before) and _in_word(after)


def _in_word(sign: str) -> bool:
    return sign != "" and unicodedata.category(sign)[0] in "LMN"
