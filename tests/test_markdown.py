"""Any text as Markdown: what a real renderer shows is the text itself, whatever it holds and wherever it stands."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable
from importlib.util import find_spec

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memory_pipeline.markdown import block, inline

# Of what has a meaning in Markdown, pieces and whole; line breaks among it; and words for it to act upon.
PIECES = [
    *"\\`*_~[]()<>&;#!|$:-=+.@/{}^\"'",
    *(" ", " ", "  ", "    ", "\t", "\n", "\n", "\n\n", "\r\n", "\x0b", "\u00a0", "\u2028"),
    *("a", "b", "è", "1", "10", "_a_", "x\u0301", "😀", "ق", "—", "«"),
    *("```", "~~", "~~~", "**", "***", "__", "---", "===", "- ", "+ ", "* ", "> ", "# ", "## ", " #", "1. ", "1) "),
    *("[ ] ", "[x] ", "[^1]", "[^1]: ", "![", "](", "](u)", "[a]: /u", "[!NOTE]", "|---|", "| a |", ":-", ":-:", "||"),
    *("<b>", "</b>", "<!--", "-->", "<?", "<script>", "<![CDATA[", "<div", "&amp;", "&copy", "&#35;", "&#x41;", "amp;"),
    *("http:", "https://", "ftp://", "//", "www.", "mailto:", "a@b.it", "@a", "example.com", ":date:", ":+1:", "$$"),
]
NASTY = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
HIDDEN = "\x00\x07\x1b\x7f\x9b\u00ad\u034f\u061c\u115f\u180e\u200b\u200e\u200f\u202a\u202e\u2060\u2066\u2069\u3164\ufeff\ufff9\U000e0041"
PUNCTUATION = re.compile(r"\\([!-/:-@\[-`{-~])")


def _renderers() -> dict[str, MarkdownIt]:
    """CommonMark; with tables and strikethrough; and, where links can be found, all of GitHub's that there is."""
    found = {
        "commonmark": MarkdownIt("commonmark"),
        "tables": MarkdownIt("commonmark").enable(["table", "strikethrough"]),
    }
    if find_spec("linkify_it"):
        for name in ("gfm-like", "gfm-like2"):
            found[name] = MarkdownIt(name)
            found[name].linkify.set({"fuzzy_link": False})  # GitHub makes no link of a.it, which may be a column
    return found


RENDERERS = _renderers()
WITH_TABLES = {name: renderer for name, renderer in RENDERERS.items() if name != "commonmark"}

# name → what stands around the text, and what a renderer makes of both
PLACES: dict[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    "paragraph": (lambda text: text, lambda shown: f"<p>{shown}</p>\n"),
    "second line": (lambda text: f"a\n{text}", lambda shown: f"<p>a\n{shown}</p>\n"),
    "between lines": (lambda text: f"a\n{text}\nb", lambda shown: f"<p>a\n{shown}\nb</p>\n"),
    "item": (lambda text: f"- {text}\n", lambda shown: f"<ul>\n<li>{shown}</li>\n</ul>\n"),
    "numbered": (lambda text: f"1. {text}\n", lambda shown: f"<ol>\n<li>{shown}</li>\n</ol>\n"),
    "heading": (lambda text: f"## {text}\n", lambda shown: f"<h2>{shown}</h2>\n"),
    "quotation": (lambda text: f"> {text}", lambda shown: f"<blockquote>\n<p>{shown}</p>\n</blockquote>\n"),
    "strong": (lambda text: f"**{text}**: b", lambda shown: f"<p><strong>{shown}</strong>: b</p>\n"),
    "strong item": (
        lambda text: f"- **{text}**: {text}",
        lambda shown: f"<ul>\n<li><strong>{shown}</strong>: {shown}</li>\n</ul>\n",
    ),
    "after": (lambda text: f"*a* {text} [b](c)", lambda shown: f'<p><em>a</em> {shown} <a href="c">b</a></p>\n'),
}
ROW = "<tr>\n<{cell}>{shown}</{cell}>\n<{cell}>b</{cell}>\n<{cell}>{shown}</{cell}>\n</tr>\n"


def written(text: str) -> str:
    """What a renderer writes for a text."""
    return html.escape(text, quote=False).replace('"', "&quot;")


def on_one_line(text: str) -> str:
    return " ".join(text.split())


def lines_of(text: str) -> list[str]:
    lines = [on_one_line(line) for line in text.splitlines()]
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    return lines


def meant(markdown: str) -> str:
    """What is left to have a meaning once everything that is escaped is a letter."""
    return PUNCTUATION.sub("é", markdown)


def hides(sign: str) -> bool:
    return unicodedata.category(sign) in {"Cc", "Cf", "Cn", "Cs", "Mn", "Lo"} and not sign.isspace()


class TestInline:
    @given(NASTY)
    @settings(max_examples=400)
    @example("**a** _b_ `c` [d](e) <f> ![g](h) ~~i~~ $j$ | k")
    @example("a\\")
    @example("\\|")
    @example("`a\\`")
    @example("* * *")
    def test_shows_the_text_and_nothing_else_wherever_it_stands(self, text):
        shown = on_one_line(text)
        assume(shown)
        for name, renderer in RENDERERS.items():
            for place, (around, becomes) in PLACES.items():
                assert renderer.render(around(inline(text))) == becomes(written(shown)), (name, place)

    @given(NASTY)
    @settings(max_examples=200)
    @example("a | b \\| c \\\\| d \\")
    def test_stays_in_its_cell(self, text):
        cell, shown = inline(text), written(on_one_line(text))
        table = f"| {cell} | b | {cell} |\n| --- | --- | --- |\n| {cell} | b | {cell} |\n"
        head, body = ROW.format(cell="th", shown=shown), ROW.format(cell="td", shown=shown)
        for name, renderer in WITH_TABLES.items():
            expected = f"<table>\n<thead>\n{head}</thead>\n<tbody>\n{body}</tbody>\n</table>\n"
            assert renderer.render(table) == expected, name

    @given(st.one_of(st.text(), st.text(alphabet=HIDDEN + "a *é\n")))
    def test_shows_every_character_of_any_text_or_that_there_is_one(self, text):
        before = on_one_line(text)
        assume(before)
        for renderer in RENDERERS.values():
            page = renderer.render(inline(text))
            after = html.unescape(page.removeprefix("<p>").removesuffix("</p>\n"))
            assert len(after) == len(before)
            assert all(a == b or (a == "�" and hides(b)) for a, b in zip(after, before, strict=True))

    @given(st.one_of(NASTY, st.text(alphabet=st.characters(max_codepoint=0x2FF, exclude_categories=["Cc", "Cf"]))))
    def test_is_the_text_itself_but_for_backslashes(self, text):
        assert PUNCTUATION.sub(r"\1", inline(text)) == on_one_line(text)

    @given(NASTY)
    @example("èwww.a")
    @pytest.mark.parametrize(
        "meaning",
        [
            r"[`$\[|]",
            r"(?i)(?:^|[\W_])www\.[a-z0-9]",
            r"(?:https?|ftp)://",
            r"(?:^|[\s:(])//[a-z0-9]",
            r"@[a-z0-9]",
            r":[a-z0-9_+-]*[a-z][a-z0-9_+-]*:",
            r"<[a-zA-Z/!?]",
            r"&#?[a-zA-Z0-9]+;",
        ],
    )
    def test_leaves_nothing_that_an_extension_would_take_for_its_own(self, meaning, text):
        assert not re.search(meaning, meant(inline(text)))

    @pytest.mark.parametrize(
        "text",
        [
            "flag_attivo = TRUE, età >= 18",
            "dm.fact_visite.data_dimissione IS NOT NULL",
            "a < 5, b <= 6, c <> 7, d > 8, e -> f, -g",
            "R&D, AT&T & c.",
            "a * b ** c, a _ b, a ~ b",
            "10:30:00, a: b, valore::int, seq:1",
            "50% of #3, C#, #tag, 1.5, 1.a, 2023)",
            "(a) {b} 'c' \"d\" ^ + = !",
            "C:\\temp\\file",
            "1/2, a//b, // a comment, a @ b",
            "patients.id, wwww.x, éwww.x",
            "cosa__c_è_e\u0301_x_²",
            "perché — «sì»…",
            "👨‍👩‍👧 ❤️‍🔥 1️⃣ می‌خواهم क्‍ष",
        ],
    )
    def test_leaves_ordinary_text_as_it_is(self, text):
        assert inline(text) == text

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("count(*)", r"count(\*)"),
            ("_a_ a_(b) a__", r"\_a\_ a\_(b) a\_\_"),
            ("`Free Meal`", r"\`Free Meal\`"),
            ("[x] a[0]", r"\[x] a\[0]"),
            ("a || b", r"a \|\| b"),
            ("$1 H~2~O", r"\$1 H\~2\~O"),
            ("<b> </b> <!-- <?", r"\<b> \</b> \<!-- \<?"),
            ("&lt; &#60;", r"\&lt; \&#60;"),
            ("\\* \\a \\", r"\\\* \a \\"),
            ("http://www.a.it", r"http:\//www\.a.it"),
            ("https:// a, //a.it", r"https:\// a, \//a.it"),
            ("a@b.it, @a", r"a\@b.it, \@a"),
            ("a::date::text", r"a:\:date::text"),
            (":100: :+1: :30:", r"\:100: \:+1: :30:"),
            ("# a #", r"\# a \#"),
            ("###### a", r"\###### a"),
            ("####### a", "####### a"),
            ("##", r"\##"),
            ("- a", r"\- a"),
            ("+", r"\+"),
            ("---", r"\---"),
            (":-:", r"\:-:"),
            ("=", r"\="),
            ("==", r"\=="),
            ("=a", "=a"),
            (">= 18", r"\>= 18"),
            ("1. a", r"1\. a"),
            ("12)", r"12\)"),
            ("a <", r"a \<"),
        ],
    )
    def test_escapes_what_could_have_a_meaning(self, text, expected):
        assert inline(text) == expected

    @pytest.mark.parametrize("sign", HIDDEN)
    def test_shows_where_there_is_something_that_cannot_be_seen(self, sign):
        assert inline(f"a{sign}b") == "a�b"

    @pytest.mark.parametrize("sign", ["\u200c", "\u200d", "\ufe0f", "\U000e0100"])
    def test_shows_that_there_is_a_joiner_or_selector_in_a_plain_word(self, sign):
        assert inline(f"a{sign}b") == "a�b"

    def test_a_character_has_one_selector_and_one_joiner_to_another(self):
        assert inline("❤\ufe0f\ufe0f") == "❤\ufe0f�"
        assert inline("❤\ufe0f\u200d🔥") == "❤\ufe0f\u200d🔥"
        assert inline("❤\u200d\u200d🔥") == "❤��🔥"
        assert inline("❤\u200da") == "❤�a"

    def test_half_of_a_character_can_be_encoded_afterwards(self):
        assert inline("a\ud800b") == "a�b"

    def test_nothing_is_composed_or_decomposed(self):
        assert inline("e\u0301 \u00e9 ﬁ") == "e\u0301 \u00e9 ﬁ"

    @pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u3000"])
    def test_nothing_stays_nothing(self, blank):
        assert inline(blank) == ""

    @pytest.mark.parametrize("piece", [*PIECES, ":a", "<a", "&a", "/ ", "😀\u200d", "- -"])
    def test_takes_no_longer_for_a_sign_that_stands_a_hundred_thousand_times(self, piece):
        assert inline(piece * 100_000 + "é").endswith("é")


# what stands before the first line, the indent of the others, and what a renderer makes of both
HOMES = {
    "paragraph": ("", "", "<p>{}</p>\n"),
    "second line": ("a\n", "", "<p>a\n{}</p>\n"),
    "item": ("- ", "  ", "<ul>\n<li>{}</li>\n</ul>\n"),
    "numbered": ("10. ", "    ", '<ol start="10">\n<li>{}</li>\n</ol>\n'),
    "nested": ("- - ", "    ", "<ul>\n<li>\n<ul>\n<li>{}</li>\n</ul>\n</li>\n</ul>\n"),
    "behind a term": ("- **a**: ", "  ", "<ul>\n<li><strong>a</strong>: {}</li>\n</ul>\n"),
    "below": ("- a\n\n  ", "  ", "<ul>\n<li>\n<p>a</p>\n<p>{}</p>\n</li>\n</ul>\n"),
}


class TestBlock:
    @given(NASTY)
    @settings(max_examples=400)
    @example("a\n===\nb\n---\nc")
    @example("a\n\n\n    b\n\tc")
    @example("a | b\n--- | ---\nc | d")
    @example("a\n:-\nb")
    @example("a\\\n\\\nb\\")
    @example("[a]: /b\n[a]")
    def test_is_one_paragraph_in_which_every_line_break_is_one(self, text):
        lines = lines_of(text)
        assume(lines)
        shown = "<br />\n".join(written(line) for line in lines)
        for name, renderer in RENDERERS.items():
            for home, (before, indent, around) in HOMES.items():
                page = renderer.render(before + block(text, indent))
                assert page == around.format("{}").replace("{}", shown), (name, home)

    @given(NASTY)
    def test_of_one_line_is_that_line(self, text):
        line = on_one_line(text)
        assert block(line) == inline(line)

    @given(NASTY)
    def test_has_its_indent_before_every_line_but_the_first(self, text):
        first, *others = block(text, "   ").split("\n")
        assert block(text) == "\n".join([first, *(line.removeprefix("   ") for line in others)])
        assert all(line.startswith("   ") for line in others)

    def test_of_an_ordinary_text_stays_readable(self):
        assert block("età >= 18\n\n- flag_attivo = TRUE\n") == "età >= 18\\\n\\\n\\- flag_attivo = TRUE"

    @pytest.mark.parametrize("blank", ["", " ", "\n\n", "\u2028\t"])
    def test_nothing_stays_nothing(self, blank):
        assert block(blank, "  ") == ""
