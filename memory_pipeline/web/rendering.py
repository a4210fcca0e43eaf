"""Renders pages: templates that escape whatever they are given, and the words in which values are shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from html import unescape
from typing import Any
from urllib.parse import quote

import nh3
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from memory_pipeline.cards import Family, Flag
from memory_pipeline.reviewing import words

_FAMILIES = {
    Family.CONCEPT: "Concept",
    Family.SQL_RULE: "SQL rule",
    Family.PITFALL: "Pitfall",
    Family.SOLVED_QUESTION: "Solved question",
}
_ORIGINS = {"session": "from sessions", "hand": "made by hand"}

# HTML in a text is shown as text, and pictures are none: they would tell another host who reads this.
_MARKDOWN = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
_MARKDOWN.disable(["image", "html_block", "html_inline"])
_TAGS = {
    *("p", "br", "em", "strong", "s", "code", "pre", "blockquote", "hr", "ul", "ol", "li", "a"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
_TAG = re.compile(r"<[^>]*>")
_LONGEST = 20_000  # characters; of longer ones some, such as of brackets alone, would take many seconds
_SCHEMES = {"http", "https", "mailto"}


def rendered(
    request: Request,
    template: str,
    context: Mapping[str, Any],
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A page of a template.

    Args:
        request: for which it is.
        template: its file.
        context: what it shows; everything is escaped.
        status: of the answer.
        headers: of the answer.
    """
    page = _TEMPLATES.get_template(template).render(request=request, url_for=partial(address, request), **context)
    return HTMLResponse(page, status, headers)


def markdown(text: str) -> Markup:
    """A text that may be Markdown, as HTML without anything that acts: no HTML of its own, no pictures, no scripts.

    A very long one is shown as it is written.
    """
    if len(text) > _LONGEST:
        return Markup('<p class="quoted">{}</p>').format(text)
    found = _MARKDOWN.render(text)
    return Markup(  # noqa: S704  # it was cleaned
        nh3.clean(found, tags=_TAGS, attributes={"a": {"href"}}, url_schemes=_SCHEMES, link_rel="noopener noreferrer")
    )


def family(value: str) -> str:
    """What a family is called."""
    return _FAMILIES.get(Family(value), value) if value in set(Family) else value


def moment(value: datetime | None) -> Markup:
    """A moment in UTC, to the minute."""
    if value is None:
        return Markup("")
    utc = value.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(utc.isoformat(), f"{utc:%Y-%m-%d %H:%M} UTC")


def flag(value: str) -> str:
    """What a flag says; those that an import brought along say only their name."""
    return f"{Flag(value).meaning}" if value in set(Flag) else value


def origin(value: str) -> str:
    """Where a card came from."""
    return _ORIGINS.get(value, value)


def seconds(value: float | None) -> str:
    """A length of time, in the unit in which it is read most easily."""
    if value is None:
        return "–"
    for unit, length in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if value >= length:
            return f"{value / length:.1f} {unit}"
    return f"{value:.1f} s"


def marked_up(text: str) -> bool:
    """Whether a text, shown as Markdown, does not say what was written, word for word."""
    return len(text) <= _LONGEST and unescape(_TAG.sub(" ", str(markdown(text)))).split() != text.split()


def _choices(values: Iterable[Any]) -> list[tuple[str, str]]:
    return [(str(value), str(value)) for value in values]


def _flag_choices(values: Iterable[str]) -> list[tuple[str, str]]:
    return [(str(value), flag(value)) for value in values]


def address(request: Request, name: str, /, **parameters: object) -> str:
    """The address of a page by the name of its function, without the host: whichever name it is asked by."""
    pages: APIRouter = request.app.state.pages  # whose functions may be called as some of the HTTP interface are
    # A session's name may hold what means something else in an address, such as `?` or `%`.
    return str(pages.url_path_for(name, **{key: quote(str(value), safe="") for key, value in parameters.items()}))


_TEMPLATES = Environment(
    loader=PackageLoader("memory_pipeline.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= {
    "markdown": markdown,
    "family": family,
    "moment": moment,
    "flag": flag,
    "origin": origin,
    "seconds": seconds,
    "told": words.told,
    "recorded": words.recorded,
    "decision": words.named,
    "how_alike": words.how_alike,
    "choices": _choices,
    "flag_choices": _flag_choices,
}
_TEMPLATES.tests |= {"marked_up": marked_up}
_TEMPLATES.globals |= {"families": list(Family), "flags": list(Flag)}
