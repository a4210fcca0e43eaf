"""Making, changing and deleting cards on pages, by people without scripts."""

from __future__ import annotations

import html
import re

import pytest

from memory_pipeline.archive.grants import Role
from memory_pipeline.cards import Dependency, Family
from memory_pipeline.curation import Curation
from memory_pipeline.edits import Change, Delete, Link
from memory_pipeline.errors import ArchiveUnavailable, CardNotFound
from tests.curating import CLINIC, a_creation, all_away
from tests.web.conftest import csrf

CARDS, NEW = f"/w/{CLINIC}/cards", f"/w/{CLINIC}/new-card"
_TAGS = re.compile(r"<(?:input|textarea|select)\b[^>]*>")


def opened(page: str) -> dict[str, str]:
    """What a browser would send of a page's form of a card, as it was opened."""
    form = page[page.index('class="editor"') :]
    fields = {}
    for tag, rest in re.findall(r"<(input|textarea|select)\b([^>]*)>", form):
        named = re.search(r'name="([^"]*)"', rest)
        if not named or 'type="checkbox"' in rest or ('type="radio"' in rest and "checked" not in rest):
            continue
        name = html.unescape(named[1])
        if tag == "input":
            value = re.search(r'value="([^"]*)"', rest)
            given = html.unescape(value[1]) if value else ""
            one_line = 'type="hidden"' not in rest  # of which a browser drops line ends
            fields[name] = given.replace("\r", "").replace("\n", "") if one_line else given
        else:
            body = form[form.index(rest) + len(rest) + 1 :]
            body = body[: body.index(f"</{tag}>")]
            fields[name] = html.unescape(body).removeprefix("\n") if tag == "textarea" else "out"
    return {name: value.replace("\r\n", "\n").replace("\n", "\r\n") for name, value in fields.items()}


def form_of(admin, card_id: str) -> dict[str, str]:
    return opened(admin.get(f"{CARDS}/{card_id}/edit").text)


@pytest.mark.parametrize(
    ("family", "texts"),
    [
        (Family.CONCEPT, {"subject": "Paziente", "detail": "attivo", "rationale": "r", "concepts": "a\nb"}),
        (Family.SQL_RULE, {"subject": "Date", "detail": "sempre in UTC"}),
        (Family.PITFALL, {"subject": "Doppi", "detail": "conta i distinti"}),
        (Family.SOLVED_QUESTION, {"question": "Quanti?", "sql": "SELECT count(*) FROM dm.visite", "context": "c"}),
    ],
)
def test_a_card_of_each_family_is_made_with_links_and_dependencies_in_one_save(admin, curation, family, texts):
    curation.save(CLINIC, a_creation(subject="another"), propagate=False)
    form = opened(admin.get(NEW, params={"family": family}).text)

    links = {"link.0.other": "mem-0001", "link.0.meaning": "is about", "link.1.other": "mem-0001",
             "link.1.meaning": "explains", "link.1.way": "in"}  # fmt: skip  # one row of the form a line
    sent = {**form, **texts, **links, "tables": "dm.visite", "columns": 'dm."v.2".reparto'}
    answer = admin.post(NEW, data=sent)

    assert answer.status_code == 303
    page = admin.get(answer.headers["location"]).text
    assert "Done" in page
    card = curation.detail(CLINIC, answer.headers["location"].rpartition("/")[2])
    assert {name: getattr(card.content, name) for name in texts if name != "concepts"} == {
        name: text for name, text in texts.items() if name != "concepts"
    }
    assert card.content.concepts == (("a", "b") if "concepts" in texts else ())
    assert card.content.dependencies == (
        Dependency("", "dm", "v.2", "reparto"),
        Dependency("", "dm", "visite"),
    )
    assert {(link.meaning, link.outgoing) for link in card.links} == {("is about", True), ("explains", False)}
    assert card.projection.state == "recallable"


def test_what_was_not_touched_stays_as_it_is_to_the_byte(admin, curation):
    strange = "\r\nfirst\rsecond \r\n\n third\t\n"
    curation.save(CLINIC, a_creation(subject="a\nb", detail=strange, schema="d m", concepts=("x\ny", 'q"z')))

    answer = admin.post(f"{CARDS}/mem-0001/edit", data={**form_of(admin, "mem-0001"), "rationale": "new"})

    assert answer.status_code == 303
    content = curation.detail(CLINIC, "mem-0001").content
    assert (content.subject, content.detail, content.schema) == ("a\nb", strange, "d m")
    assert content.concepts == ("x\ny", 'q"z')
    assert content.rationale == "new"


def test_a_form_that_changes_nothing_says_so(admin, curation):
    curation.save(CLINIC, a_creation())

    answer = admin.post(f"{CARDS}/mem-0001/edit", data=form_of(admin, "mem-0001"))

    assert "stays as it was" in admin.get(answer.headers["location"]).text
    assert curation.detail(CLINIC, "mem-0001").version == 1


def test_the_dependencies_of_a_solved_question_follow_its_sql_until_they_are_changed_by_hand(admin, curation):
    curation.save(CLINIC, a_creation(family=Family.SOLVED_QUESTION, subject="", detail="", question="q",
                                     sql="SELECT 1 FROM a"))  # fmt: skip  # as it is read

    admin.post(f"{CARDS}/sq-0001/edit", data={**form_of(admin, "sq-0001"), "sql": "SELECT 1 FROM b"})
    followed = curation.detail(CLINIC, "sq-0001").content.tables
    admin.post(f"{CARDS}/sq-0001/edit", data={**form_of(admin, "sq-0001"), "tables": "c"})

    assert followed == ("b",)
    assert curation.detail(CLINIC, "sq-0001").content.tables == ("c",)


def test_a_fault_keeps_all_that_was_typed_and_stands_beside_its_field(admin, curation):
    form = opened(admin.get(NEW, params={"family": "concept"}).text)
    typed = {"subject": "  ", "detail": "<b>kept</b>", "concepts": "one\ntwo", "columns": "a.b.c.d.e",
             "link.0.other": "mem-9999", "link.0.meaning": ""}  # fmt: skip  # as it is read

    answer = admin.post(NEW, data={**form, **typed})

    assert answer.status_code == 400
    kept = opened(answer.text)
    assert {name: kept[name].replace("\r\n", "\n") for name in typed} == typed
    assert 'href="#columns"' in answer.text
    assert 'id="columns.fault"' in answer.text
    fixed = admin.post(NEW, data={**kept, "columns": "a.b"})
    assert fixed.status_code == 400
    assert 'id="subject.fault"' in fixed.text
    assert 'id="link.0.fault"' in fixed.text
    assert curation.list(CLINIC, _everything()).total == 0


def test_a_card_to_link_with_that_is_not_there_is_said(admin):
    form = opened(admin.get(NEW, params={"family": "concept"}).text)
    sent = {**form, "subject": "s", "detail": "d", "link.0.other": "mem-9999", "link.0.meaning": "is"}

    answer = admin.post(NEW, data=sent)

    assert answer.status_code == 400
    assert "mem-9999" in answer.text
    assert 'id="links.fault"' in answer.text


def test_another_row_is_given_and_nothing_is_saved(admin, curation):
    form = opened(admin.get(NEW, params={"family": "concept"}).text)

    answer = admin.post(NEW, data={**form, "subject": "half", "action": "row"})

    assert answer.status_code == 200
    assert "link.2.other" in opened(answer.text)
    assert opened(answer.text)["subject"] == "half"
    assert curation.list(CLINIC, _everything()).total == 0


def test_links_are_changed_and_removed_with_the_rest(admin, curation):
    for subject in ("a", "b"):
        curation.save(CLINIC, a_creation(subject=subject))
    curation.save(CLINIC, a_creation(Link("mem-0001", "old"), Link("mem-0002", "gone", outgoing=False), subject="c"))
    form = form_of(admin, "mem-0003")
    rows = {form[f"link.{n}.other"]: n for n in (0, 1)}

    sent = {**form, f"link.{rows['mem-0001']}.meaning": "new", f"link.{rows['mem-0002']}.remove": "yes"}
    admin.post(f"{CARDS}/mem-0003/edit", data={**sent, "detail": "also"})

    card = curation.detail(CLINIC, "mem-0003")
    assert [(link.other, link.meaning) for link in card.links] == [("mem-0001", "new")]
    assert (card.content.detail, card.version) == ("also", 2)


class TestConflict:
    @pytest.fixture
    def mine(self, admin, curation: Curation) -> dict[str, str]:
        """A form that was opened before somebody else changed detail and rationale."""
        curation.save(CLINIC, a_creation(subject="s", detail="old detail", rationale="old rationale"))
        form = form_of(admin, "mem-0001")
        curation.save(CLINIC, Change("mem-0001", 1, {"detail": "their detail", "rationale": "their rationale"}))
        return form

    def test_shows_both_versions_and_saves_what_is_chosen(self, admin, curation, mine):
        sent = {**mine, "subject": "my subject", "detail": "my detail"}

        answer = admin.post(f"{CARDS}/mem-0001/edit", data=sent)

        assert answer.status_code == 409
        page = opened(answer.text)
        assert (page["subject"], page["detail"]) == ("my subject", "my detail")
        assert page["rationale"] == "their rationale"
        assert "their detail" in answer.text
        assert "old rationale" in answer.text
        assert curation.detail(CLINIC, "mem-0001").version == 2
        assert admin.post(f"{CARDS}/mem-0001/edit", data=page).status_code == 303
        content = curation.detail(CLINIC, "mem-0001").content
        assert (content.subject, content.detail, content.rationale) == ("my subject", "my detail", "their rationale")

    def test_lets_the_others_stand_where_that_is_chosen(self, admin, curation, mine):
        answer = admin.post(f"{CARDS}/mem-0001/edit", data={**mine, "subject": "my subject", "detail": "my detail"})

        admin.post(f"{CARDS}/mem-0001/edit", data={**opened(answer.text), "take.detail": "theirs"})

        content = curation.detail(CLINIC, "mem-0001").content
        assert (content.subject, content.detail) == ("my subject", "their detail")

    def test_may_come_again(self, admin, curation, mine):
        first = admin.post(f"{CARDS}/mem-0001/edit", data={**mine, "detail": "my detail"})
        curation.save(CLINIC, Change("mem-0001", 2, {"detail": "third"}))

        second = admin.post(f"{CARDS}/mem-0001/edit", data=opened(first.text))

        assert second.status_code == 409
        assert opened(second.text)["detail"] == "my detail"
        assert "third" in second.text

    @pytest.mark.parametrize(
        "again", [{"action": "row"}, {"subject": " "}, {"link.0.other": "mem-9999", "link.0.meaning": "is"}]
    )
    def test_stays_with_the_form_however_often_it_is_shown(self, admin, curation, mine, again):
        first = admin.post(f"{CARDS}/mem-0001/edit", data={**mine, "detail": "my detail"})

        shown = admin.post(f"{CARDS}/mem-0001/edit", data={**opened(first.text), "take.detail": "theirs", **again})

        assert shown.status_code in {200, 400}
        assert "their detail" in shown.text
        assert "my detail" in shown.text
        assert "changed this card at" in shown.text
        kept = opened(shown.text)
        assert kept["take.detail"] == "theirs"
        admin.post(f"{CARDS}/mem-0001/edit", data={**kept, "subject": "s", "link.0.other": "", "link.0.meaning": ""})
        assert curation.detail(CLINIC, "mem-0001").content.detail == "their detail"

    def test_after_theirs_was_chosen_keeps_mine_in_a_further_one(self, admin, curation, mine):
        first = admin.post(f"{CARDS}/mem-0001/edit", data={**mine, "detail": "my detail"})
        curation.save(CLINIC, Change("mem-0001", 2, {"rationale": "third"}))

        second = admin.post(f"{CARDS}/mem-0001/edit", data={**opened(first.text), "take.detail": "theirs"})

        assert second.status_code == 409
        assert all(each in second.text for each in ("my detail", "their detail", "third"))
        assert opened(second.text)["take.detail"] == "theirs"

    def test_of_a_form_of_another_family_is_refused(self, admin, curation, mine):
        other = {**mine, "family": "solved_question", "question": "q", "sql": "s"}

        assert admin.post(f"{CARDS}/mem-0001/edit", data=other).status_code == 400

    def test_with_a_deletion_leaves_what_was_written_as_a_new_card(self, admin, curation, mine):
        curation.save(CLINIC, Delete("mem-0001", 2))

        answer = admin.post(f"{CARDS}/mem-0001/edit", data={**mine, "detail": "my detail"})
        again = admin.post(NEW, data=opened(answer.text))

        assert answer.status_code == 409
        assert again.status_code == 303
        assert curation.detail(CLINIC, "mem-0002").content.detail == "my detail"

    def test_of_links_shows_what_became_of_each(self, admin, curation):
        for subject in ("a", "b", "c"):
            curation.save(CLINIC, a_creation(subject=subject))
        curation.save(CLINIC, Change("mem-0001", 1, links=(Link("mem-0002", "old"),)))
        form = form_of(admin, "mem-0001")
        curation.save(CLINIC, Change("mem-0001", 2, links=(Link("mem-0002", "theirs"), Link("mem-0003", "new"))))

        answer = admin.post(f"{CARDS}/mem-0001/edit", data={**form, "link.0.meaning": "mine"})

        assert answer.status_code == 409
        page = opened(answer.text)
        rows = {page[f"link.{n}.other"]: page[f"link.{n}.meaning"] for n in range(2)}
        assert rows == {"mem-0002": "mine", "mem-0003": "new"}
        assert "it says “theirs” now" in answer.text
        admin.post(f"{CARDS}/mem-0001/edit", data=page)
        assert {link.meaning for link in curation.detail(CLINIC, "mem-0001").links} == {"mine", "new"}

    def test_of_a_link_that_is_gone_is_said(self, admin, curation):
        for subject in ("a", "b"):
            curation.save(CLINIC, a_creation(subject=subject))
        curation.save(CLINIC, Change("mem-0001", 1, links=(Link("mem-0002", "old"),)))
        form = form_of(admin, "mem-0001")
        curation.save(CLINIC, Change("mem-0001", 2, links=(Link("mem-0002", None),)))

        answer = admin.post(f"{CARDS}/mem-0001/edit", data={**form, "detail": "mine"})

        assert "The link to mem-0002 (“old”) was removed meanwhile." in answer.text


@pytest.mark.parametrize("version", ["", "x", "²", "9" * 5_000, "-1"])
def test_a_version_that_is_none_is_refused(admin, curation, version):
    curation.save(CLINIC, a_creation())
    mark = csrf(admin.get("/").text)
    merge = {"keep": "mem-0001", "other": "mem-0002", "other_version": "1"}

    for address, sent in {
        f"{CARDS}/mem-0001/edit": {**form_of(admin, "mem-0001"), "version": version},
        f"{CARDS}/mem-0001/delete": {"csrf": mark, "version": version},
        f"/w/{CLINIC}/merge": {"csrf": mark, **merge, "keep_version": version},
    }.items():
        assert admin.post(address, data=sent).status_code == 400, address


def test_a_link_whose_meaning_has_line_ends_stays_as_it_is(admin, curation):
    curation.save(CLINIC, a_creation(subject="a"))
    curation.save(CLINIC, a_creation(Link("mem-0001", "is\nkind"), subject="b"))

    admin.post(f"{CARDS}/mem-0002/edit", data={**form_of(admin, "mem-0002"), "rationale": "new"})

    card = curation.detail(CLINIC, "mem-0002")
    assert (card.links[0].meaning, card.content.rationale) == ("is\nkind", "new")


def test_with_the_index_away_a_card_is_saved_and_the_page_says_that_it_is_not_recallable_yet(admin, curation, watched):
    index, embedder = watched.index, watched.embedder
    all_away(watched)

    form = opened(admin.get(NEW, params={"family": "concept"}).text)
    answer = admin.post(NEW, data={**form, "subject": "s", "detail": "d"})
    page = admin.get(answer.headers["location"]).text
    pending = admin.get(f"/w/{CLINIC}/pending").text
    tried = admin.post(f"/w/{CLINIC}/pending", data={"csrf": csrf(pending)})
    still = admin.get(tried.headers["location"]).text

    assert "not recallable yet" in page
    assert "is away" in page
    assert "mem-0001" in pending
    assert "is away" in still
    watched.index, watched.embedder = index, embedder
    admin.post(f"/w/{CLINIC}/pending", data={"csrf": csrf(pending), "card_id": "mem-0001"})
    assert "Nothing is pending" in admin.get(f"/w/{CLINIC}/pending").text


def test_with_the_archive_away_what_was_typed_is_there_still(admin, watched, monkeypatch):
    form = opened(admin.get(NEW, params={"family": "concept"}).text)

    def away(*_, **__):
        raise ArchiveUnavailable("the archive is away")

    monkeypatch.setattr(watched.database, "transaction", away)
    answer = admin.post(NEW, data={**form, "subject": "s", "detail": "long and dear"})

    assert answer.status_code == 503
    assert opened(answer.text)["detail"] == "long and dear"
    assert "Not saved" in answer.text
    assert CLINIC in answer.text


def test_with_the_role_or_the_workspace_gone_what_was_typed_is_there_still(admin, curation):
    form = {**opened(admin.get(NEW, params={"family": "concept"}).text), "subject": "s", "detail": "long and dear"}

    curation.give(CLINIC, "another", Role.ADMINISTRATOR)
    curation.give(CLINIC, curation.principal, Role.READER)
    forbidden = admin.post(NEW, data=form)
    Curation(curation._runtime, "another").remove_workspace(CLINIC)
    gone = admin.post(NEW, data=form)

    assert (forbidden.status_code, gone.status_code) == (403, 404)
    assert {opened(page.text)["detail"] for page in (forbidden, gone)} == {"long and dear"}


class TestDeletion:
    def test_names_what_goes_along_and_is_done_once(self, admin, curation):
        curation.save(CLINIC, a_creation(subject="neighbour"))
        dependency = Dependency(schema="dm", table="visite")
        curation.save(CLINIC, a_creation(Link("mem-0001", "is a"), subject="goes", dependencies=(dependency,)))

        asked = admin.get(f"{CARDS}/mem-0002/delete").text
        answer = admin.post(f"{CARDS}/mem-0002/delete", data={"csrf": csrf(asked), "version": "1"})

        assert all(each in asked for each in ("mem-0001", "neighbour", "is a", "dm.visite"))
        assert "mem-0002 is deleted" in admin.get(answer.headers["location"]).text
        with pytest.raises(CardNotFound):
            curation.detail(CLINIC, "mem-0002")
        assert curation.detail(CLINIC, "mem-0001").links == ()

    def test_of_a_card_that_changed_meanwhile_asks_again(self, admin, curation):
        curation.save(CLINIC, a_creation(detail="as it was shown"))
        asked = admin.get(f"{CARDS}/mem-0001/delete").text
        curation.save(CLINIC, Change("mem-0001", 1, {"detail": "as it is now"}))

        answer = admin.post(f"{CARDS}/mem-0001/delete", data={"csrf": csrf(asked), "version": "1"})

        assert answer.status_code == 409
        assert "as it is now" in answer.text
        assert curation.detail(CLINIC, "mem-0001").version == 2

    def test_of_a_card_is_pending_by_name_with_the_index_away(self, admin, curation, watched):
        curation.save(CLINIC, a_creation())
        all_away(watched)

        admin.post(f"{CARDS}/mem-0001/delete", data={"csrf": csrf(admin.get("/").text), "version": "1"})

        assert "Deleted card mem-0001" in admin.get(f"/w/{CLINIC}/pending").text


class TestMerging:
    def test_goes_from_the_proposal_to_one_card(self, admin, curation):
        for form in ("Paziente attivo", "paziente attivo."):
            curation.save(CLINIC, a_creation(subject=form, detail="flag_attivo = TRUE (in carico)"))

        proposals = admin.get(f"/w/{CLINIC}/duplicates").text
        asked = admin.get(f"/w/{CLINIC}/merge", params={"keep": "mem-0002", "other": "mem-0001"}).text
        sent = {"csrf": csrf(asked), "keep": "mem-0002", "keep_version": "1", "other": "mem-0001", "other_version": "1"}
        answer = admin.post(f"/w/{CLINIC}/merge", data=sent)

        assert "Keep mem-0002…" in proposals
        assert "mem-0001 is merged into mem-0002" in admin.get(answer.headers["location"]).text
        assert curation.list(CLINIC, _everything()).total == 1

    def test_of_a_card_that_changed_meanwhile_shows_both_as_they_are(self, admin, curation):
        for subject in ("a", "b"):
            curation.save(CLINIC, a_creation(subject=subject))
        curation.save(CLINIC, Change("mem-0002", 1, {"detail": "says more now"}))
        sent = {"csrf": csrf(admin.get("/").text), "keep": "mem-0001", "keep_version": "1", "other": "mem-0002",
                "other_version": "1"}  # fmt: skip  # as it is read

        answer = admin.post(f"/w/{CLINIC}/merge", data=sent)

        assert answer.status_code == 409
        assert "says more now" in answer.text


def test_a_form_without_the_mark_against_other_sites_changes_nothing(admin, curation):
    form = {**opened(admin.get(NEW, params={"family": "concept"}).text), "subject": "s", "detail": "d"}

    answer = admin.post(NEW, data={**form, "csrf": "0" * 64})

    assert answer.status_code == 403
    assert curation.list(CLINIC, _everything()).total == 0


def _everything():
    from memory_pipeline.archive.listing import ListRequest  # noqa: PLC0415  # only for counting

    return ListRequest()
