"""Every page over the sample sessions: accessible, readable on a small screen, and the pictures of the README.

MEMORY_TEST_SCREENSHOTS=docs/pictures .venv/bin/pytest tests/web/browser/test_every_page.py
"""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from memory_pipeline.archive.ingest import ingest
from memory_pipeline.demo.run import WORKSPACE, copy_samples
from memory_pipeline.propagation import audit, project
from tests.web.browser.conftest import go, picture, sign_in, violations

PAGES = {
    "workspaces": "/",
    "overview": "/overview",
    "cards": "/cards",
    "filtered": "/cards?text=pazient&family=concept&origin=session&sort=title&order=ascending",
    "card": "/cards/mem-0001",
    "solved-question": "/cards/sq-0001",
    "no-such-card": "/cards/mem-9999",
    "new-card": "/new-card",
    "new-solved-question": "/new-card?family=solved_question",
    "change": "/cards/mem-0001/edit",
    "delete": "/cards/mem-0001/delete",
    "near-duplicates": "/duplicates",
    "merge": "/merge?keep=mem-0001&other=mem-0002",
    "pending": "/pending",
    "reviews": "/sessions",
    "session": "/sessions/psd-2026-001",
    "review": "/sessions/psd-2026-020/review",
    "recall-form": "/recall",
}
SMALL = {"width": 320, "height": 640}  # WCAG 1.4.10: everything, without scrolling in two directions
NARROWEST_TILES = {"width": 1200, "height": 640}  # four of them side by side


@pytest.fixture
def sampled(site):
    """The site over the sample sessions, indexed by the real model."""
    copy_samples(site.runtime.settings.sessions)
    ingest(site.runtime.database, WORKSPACE, site.runtime.settings, site.runtime.identity)
    project(site.runtime, WORKSPACE)
    audit(site.runtime, WORKSPACE)
    return site


def test_every_page_is_accessible_and_fits_a_small_screen(sampled, visitor):
    visitor.goto("/sign-in")
    assert violations(visitor) == []
    sign_in(visitor)
    for name, path in PAGES.items():
        visitor.goto(path if path == "/" else f"/w/{WORKSPACE}{path}")
        assert violations(visitor) == [], name
        usual = visitor.viewport_size
        for size in (SMALL, NARROWEST_TILES):
            visitor.set_viewport_size(size)
            assert visitor.evaluate("document.documentElement.scrollWidth") <= size["width"], name
            assert visitor.evaluate(
                "[...document.querySelectorAll('.tiles > *')].every(t => t.scrollWidth <= t.clientWidth)"
            )
        visitor.set_viewport_size(usual)


def test_every_page_is_accessible_in_the_dark(sampled, visitor):
    visitor.emulate_media(color_scheme="dark")
    sign_in(visitor)
    for name, path in PAGES.items():
        visitor.goto(path if path == "/" else f"/w/{WORKSPACE}{path}")
        assert violations(visitor) == [], name


def test_answers_to_forms_are_accessible(sampled, visitor):
    sign_in(visitor)
    visitor.goto(f"/w/{WORKSPACE}/overview")
    picture(visitor, "overview")

    visitor.goto(f"/w/{WORKSPACE}/recall")
    visitor.get_by_label("Question, as a session").fill("Quanti pazienti attivi hanno fatto un'ablazione nel 2024?")
    visitor.get_by_label("Cards at most").fill("3")
    go(visitor.get_by_role("button", name="Ask"))
    assert violations(visitor) == []
    picture(visitor, "recall")

    visitor.goto(f"/w/{WORKSPACE}/sessions/psd-2026-020/review")
    picture(visitor, "review")
    visitor.get_by_role("radio", name="Not now").last.check()
    go(visitor.get_by_role("button", name="Record these decisions"))
    expect(visitor.get_by_role("main")).to_contain_text("Saved and recallable")
    assert violations(visitor) == []

    visitor.goto(f"/w/{WORKSPACE}/new-card?family=concept")
    visitor.get_by_label("Subject").fill("senza dettaglio")
    visitor.get_by_label("Other card").first.fill("mem-9999")
    visitor.get_by_label("Meaning").first.fill("is")
    visitor.get_by_label("Detail").evaluate("field => field.required = false")
    go(visitor.get_by_role("button", name="Create card"))
    expect(visitor.get_by_role("alert").first).to_contain_text("Not saved")
    assert violations(visitor) == []
