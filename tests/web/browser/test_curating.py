"""An administrator curates the archive in a real browser, over real services and the real model."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.curating import CLINIC, a_creation
from tests.web.browser.conftest import Site, go, picture, sign_in, violations

CARDS, RECALL, PENDING = (f"/w/{CLINIC}/{name}" for name in ("cards", "recall", "pending"))


def create(page: Page, subject: str, detail: str) -> None:
    page.goto(CARDS)
    go(page.get_by_role("link", name="New card"))
    go(page.get_by_role("link", name="Concept What a word"))
    page.get_by_label("Subject").fill(subject)
    page.get_by_label("Detail").fill(detail)
    go(page.get_by_role("button", name="Create card"))


def delete(page: Page, card_id: str) -> None:
    page.goto(f"{CARDS}/{card_id}")
    go(page.get_by_role("link", name="Delete…"))
    go(page.get_by_role("button", name=f"Delete {card_id}"))


def recalled(page: Page, question: str) -> str:
    """What recall shows for a question."""
    page.goto(RECALL)
    page.get_by_label("Question, as a session").fill(question)
    go(page.get_by_role("button", name="Ask"))
    return page.get_by_role("main").inner_text()


def test_a_card_goes_from_its_making_to_its_end(window, context, site):
    create(window, "Paziente attivo", "flag_attivo = TRUE")
    expect(window.get_by_role("status")).to_contain_text("Done")
    assert violations(window) == []

    go(window.get_by_role("link", name="Change", exact=True))
    window.get_by_label("Rationale").fill("come lo intende il reparto")
    go(window.get_by_role("button", name="Save"))
    expect(window.get_by_role("status")).to_contain_text("Done")
    window.close()
    again = context.new_page()
    again.goto(f"{CARDS}?text=reparto")
    go(again.get_by_role("link", name="mem-0001"))

    expect(again.get_by_role("main")).to_contain_text("recallable")
    expect(again.get_by_role("main")).to_contain_text("Version 2")
    assert "mem-0001 Paziente attivo" in recalled(again, "Quanti pazienti attivi?")
    delete(again, "mem-0001")
    expect(again.get_by_role("status").first).to_contain_text("mem-0001 is deleted")
    assert "mem-0001" not in recalled(again, "Quanti pazienti attivi?")


def test_with_the_index_away_what_is_saved_is_told_from_what_is_recallable_and_completed_later(window, site):
    create(window, "Paziente attivo", "flag_attivo = TRUE")
    back = site.without_index()

    go(window.get_by_role("link", name="Change", exact=True))
    window.get_by_label("Detail").fill("flag_attivo = TRUE e in carico")
    go(window.get_by_role("button", name="Save"))
    expect(window.get_by_role("status")).to_contain_text("Saved, but not recallable yet")
    expect(window.get_by_role("status")).to_contain_text("the index is away")
    create(window, "Ricovero", "dimesso dopo una notte")
    delete(window, "mem-0002")
    go(window.get_by_role("link", name="See what is pending"))
    expect(window.get_by_role("region")).to_contain_text("Deleted card mem-0002")
    assert violations(window) == []
    go(window.get_by_role("button", name="Retry all now"))
    expect(window.get_by_role("status").first).to_contain_text("the index is away")

    back()
    go(window.get_by_role("button", name="Retry all now"))
    expect(window.get_by_role("main")).to_contain_text("Nothing is pending")
    assert "e in carico" in recalled(window, "pazienti attivi")


def test_of_two_windows_the_second_sees_what_the_first_wrote_and_loses_nothing(window, context, site):
    site.curation.save(CLINIC, a_creation(subject="Paziente", detail="vecchio"))
    other = context.new_page()
    for page in (window, other):
        page.goto(f"{CARDS}/mem-0001/edit")
    window.get_by_label("Detail").fill("dalla prima finestra")
    go(window.get_by_role("button", name="Save"))

    other.get_by_label("Detail").fill("dalla seconda finestra")
    other.get_by_label("Subject").fill("Paziente in carico")
    go(other.get_by_role("button", name="Save"))

    expect(other.get_by_role("alert")).to_contain_text("Not saved")
    expect(other.get_by_label("Detail", exact=False).first).to_have_value("dalla seconda finestra")
    expect(other.get_by_role("main")).to_contain_text("dalla prima finestra")
    assert violations(other) == []
    picture(other, "conflict")
    other.get_by_label("keep theirs").check()
    go(other.get_by_role("button", name="Save"))
    content = site.curation.detail(CLINIC, "mem-0001").content
    assert (content.subject, content.detail) == ("Paziente in carico", "dalla prima finestra")


def press(page: Page, target: str) -> None:
    """Reach a control by the beginning of its name with the Tab key alone, as somebody who sees where the focus is."""
    for _ in range(80):
        page.keyboard.press("Tab")
        name = page.evaluate(
            "(document.activeElement.labels?.[0] ?? document.activeElement).innerText.trim().split('\\n')[0]"
        )
        if name.startswith(target):
            return
    pytest.fail(f"the Tab key does not lead to {target}")


def test_the_keyboard_alone_signs_in_makes_changes_and_deletes(visitor, site):
    keys = visitor.keyboard

    def follow(*target: str) -> None:
        for each in target:
            press(visitor, each)
        with visitor.expect_navigation():
            keys.press("Enter")

    visitor.goto(CARDS)
    expect(visitor.get_by_label("Token")).to_be_focused()
    keys.type("the token of this home")
    follow()
    follow("New card")
    follow("SQL rule")
    press(visitor, "Subject")
    keys.type("Date")
    press(visitor, "Detail")
    keys.type("sempre in UTC")
    follow("Create card")
    expect(visitor.get_by_role("status")).to_contain_text("mem-0001 is saved")
    follow("Change")
    press(visitor, "Rationale")
    keys.type("per confrontarle")
    follow("Save")
    expect(visitor.get_by_role("status")).to_contain_text("at version 2")
    follow("Delete…")
    follow("Delete mem-0001")
    expect(visitor.get_by_role("status").first).to_contain_text("mem-0001 is deleted")


@pytest.mark.parametrize("field", ["Meaning", "Database of the card"])
def test_enter_in_a_field_of_one_line_saves(window, site, field):
    window.goto(f"/w/{CLINIC}/new-card?family=concept")
    window.get_by_label("Subject").fill("invio")
    window.get_by_label("Detail").fill("salva")
    with window.expect_navigation(url="**/cards/mem-0001"):
        window.get_by_label(field).first.press("Enter")


def test_the_focus_can_be_seen_wherever_it_is(window):
    reached = list(iter(lambda: tab(window), "BODY none"))  # the last one is followed by the page itself

    assert len(reached) > 20
    assert all(not each.endswith(" none") for each in reached), reached


def tab(page: Page) -> str:
    """Where the next Tab leads, and how the focus is shown there."""
    page.keyboard.press("Tab")
    return page.evaluate("document.activeElement.tagName + ' ' + getComputedStyle(document.activeElement).outlineStyle")


def test_all_of_it_works_without_scripts(chromium: Browser, site: Site):
    context = chromium.new_context(base_url=site.address, java_script_enabled=False)
    page = context.new_page()
    sign_in(page)
    create(page, "Paziente attivo", "flag_attivo = TRUE")
    expect(page.get_by_role("status")).to_contain_text("Done")
    assert "mem-0001" in recalled(page, "pazienti attivi")
    delete(page, "mem-0001")
    expect(page.get_by_role("status").first).to_contain_text("is deleted")
    context.close()


def test_a_form_that_was_sent_says_that_it_is_under_way_and_is_sent_once(window):
    window.goto(f"/w/{CLINIC}/new-card?family=concept")
    window.get_by_label("Subject").fill("una volta")
    window.get_by_label("Detail").fill("sola")
    said = window.evaluate("""() => {
        const form = document.querySelector("form.editor");
        const button = form.querySelector("button[value=save]");
        form.requestSubmit(button);
        form.requestSubmit(button);
        return form.querySelector("[role=status]").textContent;
    }""")
    window.wait_for_url("**/cards/mem-*")

    assert said == "Under way…"
    window.goto(CARDS)
    expect(window.get_by_role("main")).to_contain_text("1 card, page 1 of 1")
