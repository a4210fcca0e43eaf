"""Reads a page as a browser does, and tells what of it came from content: elements and attributes never may."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

CANARY = "canary"
"""Stands in every name that hostile content would have a page hold: of an element, an attribute, a scheme's code."""

# Texts that are each something else to somebody who does not take them for texts; none has a line end.
PAYLOADS = (
    f"<script>{CANARY}()</script>",
    f'"><img src=x onerror="{CANARY}()"><{CANARY}>',
    f"' onfocus='{CANARY}()' autofocus {CANARY}='1",
    f"</title></textarea></option></select></pre></style><{CANARY} a=1>",
    f"<!-- <{CANARY}> --> <![CDATA[<{CANARY}>]]> <svg/onload={CANARY}()>",
    "'; DROP TABLE cards; -- \\' OR 1=1",
    f"[a](javascript:{CANARY}()) [b](data:text/html,{CANARY}) [c](JaVaScRiPt&colon;{CANARY}()) [d](vbscript:{CANARY})",
    f"![e](https://evil.example/{CANARY}.png) ![f](data:image/svg+xml,{CANARY}) <javascript:{CANARY}()>",
    f'[g](https://ok.example "{CANARY}" onclick={CANARY}) [h]( /x"onclick="{CANARY} )',
    f"&lt;{CANARY}&gt; &#60;{CANARY}&#62; &amp;lt; &quot;",
    f"{{{{ 7 * 7 }}}} {{% {CANARY} %}} ${{7*7}}",
    "abc\u202edef\u2066ghi\u2069\u200f\u200b\ufeff\u2028\ufffe",
)
HOSTILE = " ".join(PAYLOADS)

_VOID = frozenset({"meta", "link", "input", "br", "hr", "img"})
_LINKS = re.compile(r"(/(?![/\\])|\?|#|https?://|mailto:)")
_ALLOWED = frozenset(
    ("html", "head", "meta", "title", "link", "script", "body", "header", "main", "nav", "section", "div", "span", "p",
     "h1", "h2", "h3", "h4", "h5", "h6", "a", "strong", "em", "s", "code", "pre", "blockquote", "br", "hr", "time",
     "ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "form", "input", "button", "label",
     "select", "option", "textarea", "fieldset", "legend", "details", "summary", "figure", "figcaption",
     "svg", "g", "rect", "line", "text")
)  # fmt: skip  # what templates and Markdown have


@dataclass
class Page(HTMLParser):
    """A page that was read.

    Attributes:
        elements: each with its attributes.
        said: what it says, and what stands in its fields.
    """

    html: str
    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    said: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[str] = []
        self.feed(self.html)
        self.close()
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute twice in {tag}: {attrs}"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self.said += "".join(f" {value} " for name, value in attrs if name == "value")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element without content."""
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        """Note the end of an element."""
        assert self._open, f"ends without beginning: {tag}"
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note what is said."""
        self.said += data

    def handle_comment(self, data: str) -> None:
        """There are none."""
        raise AssertionError(f"a comment: {data}")

    def unknown_decl(self, data: str) -> None:
        """There are none."""
        raise AssertionError(f"a declaration: {data}")


def assert_harmless(html: str) -> Page:
    """Nothing in a page acts that is not ours; the page."""
    page = Page(html)
    for tag, attributes in page.elements:
        assert tag in _ALLOWED, f"<{tag}>"
        for name, value in attributes.items():
            assert re.fullmatch(r"[a-zA-Z][a-zA-Z0-9-]*", name), f"<{tag} {name}>"
            assert CANARY not in name
            assert not name.startswith("on"), f"<{tag} {name}>"
            assert name not in {"style", "srcset", "srcdoc", "ping", "background"}, f"<{tag} {name}>"
            if name in {"href", "src", "action", "formaction"}:
                assert _LINKS.match(value), f"<{tag} {name}={value!r}>"
            if name in {"class", "id", "type", "rel", "method", "role", "name"}:
                assert CANARY not in value, f"<{tag} {name}={value!r}>"
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert all(attributes == {"src": "/static/smooth.js", "defer": ""} for attributes in scripts)
    assert "".join(re.findall(r"<script[^>]*>(.*?)</script>", html, re.DOTALL)) == ""
    assert not {"style", "img", "iframe", "object", "embed", "base"} & {tag for tag, _ in page.elements}
    return page
